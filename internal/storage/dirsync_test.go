package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorded is a storage whose syncs of directories are written down instead of done.
func recorded(t *testing.T) (l *Local, synced func() []string) {
	t.Helper()
	l, err := NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log []string
	l.dirs = newDirSyncs(func(dir string) error {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, "/"+strings.TrimPrefix(strings.TrimPrefix(dir, l.root), "/"))
		return nil
	})
	return l, func() []string {
		out := log
		log = nil
		return out
	}
}

func wantSynced(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: synced are %q, want %q", what, got, want)
	}
}

func TestDirSyncs_EveryNewNameIsSyncedInItsParent(t *testing.T) {
	l, synced := recorded(t)
	write := func(name string, mode Mode) {
		t.Helper()
		if err := l.WriteFile(t.Context(), name, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("j/chk-1/f", CreateOnly)
	wantSynced(t, "new directories", synced(), "/", "/j", "/j/chk-1")
	write("j/chk-1/f", Replace)
	wantSynced(t, "known directory", synced(), "/j/chk-1")
	write("j/chk-2/f", Replace)
	wantSynced(t, "one new directory", synced(), "/j", "/j/chk-2")
	if err := l.Remove(t.Context(), "j/chk-1/f"); err != nil {
		t.Fatal(err)
	}
	wantSynced(t, "remove", synced(), "/j/chk-1")
	if err := l.RemoveAll(t.Context(), "j/chk-1"); err != nil {
		t.Fatal(err)
	}
	wantSynced(t, "remove all", synced(), "/j")
	write("j/chk-1/f", Replace)
	wantSynced(t, "directory that was removed", synced(), "/j", "/j/chk-1")
}

// Another process has made the directory, and may not have synced it.
func TestDirSyncs_DirectoryThatExists_IsSyncedOnce(t *testing.T) {
	l, synced := recorded(t)
	if err := os.MkdirAll(filepath.Join(l.root, "j", "chk-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w, err := l.Create(t.Context(), "j/chk-1/f")
		if err != nil {
			t.Fatal(err)
		}
		w.Abort()
	}
	wantSynced(t, "create", synced(), "/", "/j")
}

func TestDirSyncs_FailedSync_IsReportedAndTriedAgain(t *testing.T) {
	l, _ := recorded(t)
	broken := errors.New("input/output error")
	var failing error = broken
	l.dirs = newDirSyncs(func(string) error { return failing })
	if err := l.MkdirAll(t.Context(), "j"); !errors.Is(err, broken) {
		t.Errorf("make directory: %v", err)
	}
	if err := l.WriteFile(t.Context(), "f", nil, Replace); !errors.Is(err, broken) {
		t.Errorf("write file: %v", err)
	}
	if err := l.WriteFile(t.Context(), "j/f", nil, Replace); !errors.Is(err, broken) {
		t.Errorf("write into the directory that is not durable: %v", err)
	}
	failing = nil
	if err := l.WriteFile(t.Context(), "j/f", nil, Replace); err != nil {
		t.Error(err)
	}
}

// While one sync runs, all that ask for another one share it, because only a sync that begins later covers their names.
func TestDirSyncs_ThoseThatWaitShareOneSync(t *testing.T) {
	const waiting = 10
	begun, release := make(chan int, waiting), make(chan struct{})
	calls := 0
	d := newDirSyncs(func(string) error {
		calls++
		begun <- calls
		<-release
		if calls == 2 {
			return errors.New("second")
		}
		return nil
	})
	first := make(chan error)
	go func() { first <- d.sync("d") }()
	<-begun
	results := make(chan error, waiting)
	var joined sync.WaitGroup
	for range waiting {
		joined.Go(func() { results <- d.sync("d") })
	}
	// One of them is in the map as pending from the moment it waits; the others find it there however late they come, until it begins.
	release <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	<-begun
	close(release)
	joined.Wait()
	close(results)
	failed := 0
	for err := range results {
		if err != nil {
			failed++
		}
	}
	if failed == 0 || calls > waiting+1 {
		t.Errorf("%d callers got the error of the second sync, %d syncs were made", failed, calls)
	}
	if len(d.mu.running)+len(d.mu.pending) > 0 {
		t.Error("calls that have ended are remembered")
	}
}

func TestDirSyncs_MemoryOfKnownDirectoriesIsBounded(t *testing.T) {
	d := newDirSyncs(func(string) error { return nil })
	for i := range maxKnownDirs + 1 {
		d.remember("/d/" + strings.Repeat("x", i))
		if len(d.mu.known) > maxKnownDirs {
			t.Fatalf("%d directories are remembered", len(d.mu.known))
		}
	}
}
