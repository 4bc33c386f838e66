package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

func attempt(n int) job.AttemptID {
	return job.AttemptID{Job: "../j 1", Task: job.TaskID{Vertex: "count/words", Subtask: 2}, Attempt: n}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	return err == nil
}

func TestDir_IsMadeWithItsFirstUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := New(path)
	if err := d.RemoveTask(attempt(1)); err != nil || exists(t, path) {
		t.Errorf("removed: %v; the directory is there: %v", err, exists(t, path))
	}
	if err := d.Close(); err != nil || exists(t, path) {
		t.Errorf("closed: %v; the directory is there: %v", err, exists(t, path))
	}
	if err := d.Open(); err != nil || !exists(t, path) {
		t.Errorf("opened: %v; the directory is there: %v", err, exists(t, path))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestDir_HasOneUser(t *testing.T) {
	path := t.TempDir()
	d, other := New(path), New(path)
	if err := d.Open(); err != nil {
		t.Fatal(err)
	}
	if err := other.Open(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("got %v, want an error that names the directory and the remedy", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Open(); err != nil {
		t.Errorf("after the first one was closed: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
}

func TestDir_TasksAreKeptApartAndCleanedUpAfter(t *testing.T) {
	path := t.TempDir()
	d := New(path)
	var dirs []string
	for n := 1; n <= 2; n++ {
		dir, err := d.Task(attempt(n))
		if err != nil {
			t.Fatal(err)
		}
		if rel, err := filepath.Rel(filepath.Join(path, workDir), dir); err != nil || len(strings.Split(rel, string(filepath.Separator))) != 2 {
			t.Errorf("directory %s is not <job>/<attempt> below work", dir)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	if err := d.RemoveTask(attempt(1)); err != nil || exists(t, dirs[0]) || !exists(t, dirs[1]) {
		t.Errorf("removed the first: %v; there are %v, %v", err, exists(t, dirs[0]), exists(t, dirs[1]))
	}
	if err := d.RemoveTask(attempt(2)); err != nil || exists(t, filepath.Dir(dirs[1])) {
		t.Errorf("removed the last: %v; the job's directory is there: %v", err, exists(t, filepath.Dir(dirs[1])))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// What a process left that was killed is gone with the first use, but for what is local.
func TestDir_ForgetsTheTasksOfTheProcessBefore(t *testing.T) {
	path := t.TempDir()
	d := New(path)
	task, err := d.Task(attempt(1))
	if err != nil {
		t.Fatal(err)
	}
	local, err := d.Local()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.mu.lock.Close(); err != nil { // as the kernel does it
		t.Fatal(err)
	}
	next := New(path)
	if err := next.Open(); err != nil {
		t.Fatal(err)
	}
	if exists(t, task) || !exists(t, local) {
		t.Errorf("the task's directory is there: %v, the local one: %v", exists(t, task), exists(t, local))
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestDir_DefaultsOfTwoExecutorsAreDifferent(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	a, b := New(""), New("")
	for _, d := range []*Dir{a, b} {
		if err := d.Open(); err != nil {
			t.Fatal(err)
		}
	}
	if a.mu.path == b.mu.path {
		t.Errorf("both have %s", a.mu.path)
	}
	first := a.mu.path
	for _, d := range []*Dir{a, b} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if again := New(""); again.Open() != nil || again.mu.path != first {
		t.Errorf("the next one has %s, want %s again", again.mu.path, first)
	}
}

func TestDir_ID_StaysTheSame(t *testing.T) {
	dir := t.TempDir()
	for _, fresh := range []string{"host-1", "host-2"} {
		d := New(dir)
		if id, err := d.ID(fresh); err != nil || id != "host-1" {
			t.Errorf("%q, %v", id, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", " \n", "a\nb", "a\x00", strings.Repeat("x", maxIDBytes+1)} {
		if err := os.WriteFile(filepath.Join(dir, idFile), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		d := New(dir)
		if id, err := d.ID("fresh"); err == nil || !strings.Contains(err.Error(), idFile) {
			t.Errorf("%q was taken as %q", bad, id)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
