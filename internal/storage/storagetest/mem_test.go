package storagetest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

func TestMem_KeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Storage { return storagetest.NewMem() })
}

var errDisk = errors.New("no space left on device")

// failing gives the fault to operations of one kind.
func failing(kind storagetest.Kind, f storagetest.Fault) func(storagetest.Op) storagetest.Fault {
	return func(op storagetest.Op) storagetest.Fault {
		if op.Kind == kind {
			return f
		}
		return storagetest.Fault{}
	}
}

func names(t *testing.T, s storage.Storage) string {
	t.Helper()
	infos, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, i := range infos {
		out += i.Path + ";"
	}
	return out
}

func write(t *testing.T, s storage.Storage, name string) error {
	t.Helper()
	return s.WriteFile(t.Context(), name, []byte("x"), storage.Replace)
}

func TestMem_Crash_ForgetsWhatWasNotCommitted(t *testing.T) {
	m := storagetest.NewMem()
	if err := write(t, m, "kept"); err != nil {
		t.Fatal(err)
	}
	w, err := m.Create(t.Context(), "open")
	if err != nil {
		t.Fatal(err)
	}
	m.Crash()
	if err := w.Commit(); err == nil {
		t.Error("a file of the time before the crash was committed")
	}
	if got := names(t, m); got != "kept;" {
		t.Errorf("after the crash there are %s", got)
	}
}

func TestMem_Unsynced_IsVisibleUntilTheCrash(t *testing.T) {
	m := storagetest.NewMem()
	if err := errors.Join(write(t, m, "a"), write(t, m, "b")); err != nil {
		t.Fatal(err)
	}
	m.SetFaults(func(op storagetest.Op) storagetest.Fault { return storagetest.Fault{Unsynced: true} })
	if err := errors.Join(write(t, m, "c"), m.Remove(t.Context(), "a")); err != nil {
		t.Fatal(err)
	}
	if got := names(t, m); got != "b;c;" {
		t.Errorf("before the crash there are %s", got)
	}
	m.Crash()
	if got := names(t, m); got != "a;b;" {
		t.Errorf("after the crash there are %s", got)
	}
}

func TestMem_RemovalAgain_MakesItDurable(t *testing.T) {
	m := storagetest.NewMem()
	for _, remove := range []func() error{
		func() error { return m.Remove(t.Context(), "d/f") },
		func() error { return m.RemoveAll(t.Context(), "d") },
	} {
		m.SetFaults(nil)
		if err := write(t, m, "d/f"); err != nil {
			t.Fatal(err)
		}
		m.SetFaults(func(storagetest.Op) storagetest.Fault { return storagetest.Fault{Unsynced: true, After: errDisk} })
		if err := remove(); err == nil {
			t.Error("no error of the removal that was not synced")
		}
		m.SetFaults(nil)
		if err := remove(); err != nil {
			t.Error(err)
		}
		m.Crash()
		if got := names(t, m); got != "" {
			t.Errorf("after the crash there are %s", got)
		}
	}
}

func TestMem_ErrorBefore_DoesNothing_ErrorAfter_DoesIt(t *testing.T) {
	m := storagetest.NewMem()
	m.SetFaults(failing(storagetest.WriteFile, storagetest.Fault{Before: errDisk}))
	if err := write(t, m, "a"); !errors.Is(err, errDisk) || names(t, m) != "" {
		t.Errorf("before: %v, files %s", err, names(t, m))
	}
	m.SetFaults(failing(storagetest.WriteFile, storagetest.Fault{After: errDisk}))
	if err := write(t, m, "a"); !errors.Is(err, errDisk) || names(t, m) != "a;" {
		t.Errorf("after: %v, files %s", err, names(t, m))
	}
	m.Crash()
	if names(t, m) != "a;" {
		t.Error("what was done and reported as failed is not durable")
	}
}

func TestMem_FullDisk_NothingIsCommitted(t *testing.T) {
	m := storagetest.NewMem()
	w, err := m.Create(t.Context(), "f")
	if err != nil {
		t.Fatal(err)
	}
	m.SetFaults(failing(storagetest.Write, storagetest.Fault{Before: errDisk}))
	if _, err := w.Write([]byte("x")); !errors.Is(err, errDisk) {
		t.Errorf("write: %v", err)
	}
	m.SetFaults(nil)
	if err := w.Commit(); !errors.Is(err, errDisk) {
		t.Errorf("commit after the failed write: %v", err)
	}
	if got := names(t, m); got != "" {
		t.Errorf("there are %s", got)
	}
}

func TestMem_Stall_HoldsOnlyTheOperation(t *testing.T) {
	m := storagetest.NewMem()
	release, entered, done := make(chan struct{}), make(chan struct{}), make(chan error)
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		if op.Path != "slow" {
			return storagetest.Fault{}
		}
		close(entered)
		return storagetest.Fault{Stall: release}
	})
	go func() { done <- m.WriteFile(context.WithoutCancel(t.Context()), "slow", nil, storage.Replace) }()
	<-entered
	if err := write(t, m, "fast"); err != nil || names(t, m) != "fast;" {
		t.Errorf("beside the stall: %v, files %s", err, names(t, m))
	}
	close(release)
	if err := <-done; err != nil || names(t, m) != "fast;slow;" {
		t.Errorf("after the stall: %v, files %s", err, names(t, m))
	}
}

func TestMem_SetTime_IsTheTimeOfFiles(t *testing.T) {
	m := storagetest.NewMem()
	now := time.UnixMilli(12345)
	m.SetTime(now)
	if err := write(t, m, "f"); err != nil {
		t.Fatal(err)
	}
	if info, err := m.Stat(t.Context(), "f"); err != nil || !info.ModTime.Equal(now) {
		t.Errorf("%v, %v", info, err)
	}
}

// At whatever point a deletion stops, a checkpoint that still has its metadata has all its files.
func TestDiscardCheckpoint_InterruptedAnywhere_LeavesNoMetadataWithoutFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		m := storagetest.NewMem()
		if err := errors.Join(write(t, m, "j/chk-1/_metadata"), write(t, m, "j/chk-1/a"), write(t, m, "j/chk-1/b")); err != nil {
			t.Fatal(err)
		}
		m.SetFaults(func(storagetest.Op) storagetest.Fault {
			switch rng.IntN(4) {
			case 0:
				return storagetest.Fault{Before: errDisk}
			case 1:
				return storagetest.Fault{After: errDisk}
			case 2:
				return storagetest.Fault{Unsynced: true, After: errDisk}
			}
			return storagetest.Fault{}
		})
		err := storage.DiscardCheckpoint(t.Context(), m, "j/chk-1")
		m.SetFaults(nil)
		m.Crash()
		switch got := names(t, m); got {
		case "j/chk-1/_metadata;j/chk-1/a;j/chk-1/b;", "j/chk-1/a;j/chk-1/b;":
			if err == nil {
				t.Fatalf("no error, but there are %s", got)
			}
		case "":
		default:
			t.Fatalf("the crash left %s", got)
		}
		if err := storage.DiscardCheckpoint(t.Context(), m, "j/chk-1"); err != nil || names(t, m) != "" {
			t.Fatalf("the second try: %v, files %s", err, names(t, m))
		}
	}
}
