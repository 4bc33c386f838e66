package storage

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// What a removal that failed at its sync has left to do is done by the next one, which finds nothing to remove.
func TestDirSyncs_RemovalAgainAfterAFailedSync_Syncs(t *testing.T) {
	l, synced := recorded(t)
	if err := l.WriteFile(t.Context(), "j/chk-1/f", []byte("x"), CreateOnly); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		remove func() error
		want   string
	}{
		{"file", func() error { return l.Remove(t.Context(), "j/chk-1/f") }, "/j/chk-1"},
		{"directory", func() error { return l.RemoveAll(t.Context(), "j/chk-1") }, "/j"},
		{"file in a directory that is gone", func() error { return l.Remove(t.Context(), "j/chk-1/f") }, "/j"},
	} {
		working := l.dirs.syncDir
		l.dirs.syncDir = func(string) error { return errors.New("no space left on device") }
		if err := c.remove(); err == nil {
			t.Errorf("%s: no error although nothing could be synced", c.what)
		}
		l.dirs.syncDir = func(dir string) error {
			if _, err := os.Stat(dir); err != nil {
				return err
			}
			return working(dir)
		}
		synced()
		if err := c.remove(); err != nil {
			t.Errorf("%s, again: %v", c.what, err)
		}
		wantSynced(t, c.what+", again", synced(), c.want)
		l.dirs.syncDir = working
	}
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
	failing := broken
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
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("input/output error")
		release := make(chan error)
		calls := 0
		d := newDirSyncs(func(string) error {
			calls++
			return <-release
		})
		results := make(chan error, 20)
		ask := func(n int) {
			for range n {
				go func() { results <- d.sync("d") }()
			}
			synctest.Wait()
		}
		want := func(what string, begun, n int, want error) {
			t.Helper()
			synctest.Wait()
			if calls != begun || len(results) != n {
				t.Fatalf("%s: %d syncs have begun, %d callers have returned; want %d and %d", what, calls, len(results), begun, n)
			}
			for range n {
				if err := <-results; !errors.Is(err, want) {
					t.Errorf("%s: a caller got %v, want %v", what, err, want)
				}
			}
		}
		ask(1)
		ask(10)
		want("one runs, ten wait", 1, 0, nil)
		release <- nil
		want("the first has ended", 2, 1, nil)
		ask(3)
		want("the second covers nobody who came later", 2, 0, nil)
		release <- broken
		want("the second has failed for all of its callers", 3, 10, broken)
		release <- nil
		want("the third has ended", 3, 3, nil)
		if len(d.mu.running)+len(d.mu.pending) > 0 {
			t.Error("syncs that have ended are remembered")
		}
	})
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
