package localstate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func storeIn(dir string) *Store {
	return New(zap.NewNop(), func() (string, error) { return dir, nil })
}

func keep(s *Store, j job.ID, id checkpoint.ID, name, data string) {
	c := s.Create(j, id, name)
	c.Write([]byte(data))
	c.Commit()
}

// content is what is in the directory, by path.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[filepath.ToSlash(path[len(dir)+1:])] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func expect(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	for name, data := range content(t, dir) {
		got = append(got, name+"="+data)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}

func TestStore_KeepsTheLatestCompletedAndWhatIsPending(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(dir)
	keep(s, "j", 1, "a.state", "one")
	keep(s, "j", 2, "a.state", "two")
	keep(s, "k", 1, "a.state", "of another job")
	s.Completed("j", 1)
	keep(s, "j", 3, "../shared/x", "three")
	expect(t, dir, "j/chk-1/a.state=one", "j/chk-2/a.state=two", "j/chk-3/..%2Fshared%2Fx=three", "k/chk-1/a.state=of another job")
	s.Completed("j", 2)
	s.Aborted("j", 3)
	keep(s, "j", 1, "b.state", "late")
	keep(s, "j", 3, "b.state", "late")
	expect(t, dir, "j/chk-2/a.state=two", "k/chk-1/a.state=of another job")
	if path, ok := s.Path("j", 2, "a.state"); !ok || path != filepath.Join(dir, "j", "chk-2", "a.state") {
		t.Errorf("%s, %t", path, ok)
	}
	s.Remove("j", 2, "a.state")
	s.Remove("j", 2, "a.state")
	if _, ok := s.Path("j", 2, "a.state"); ok || s.Errors() != 0 {
		t.Errorf("it is there: %t, %d errors", ok, s.Errors())
	}
	s.Finished("k")
	expect(t, dir)
}

func TestStore_CopyInTheMaking_IsDiscardedWhenItsCheckpointIsOver(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(dir)
	for id, over := range map[checkpoint.ID]func(){
		5: func() { s.Aborted("j", 5) }, 6: func() { s.Completed("j", 7) },
	} {
		c := s.Create("j", id, "a")
		c.Write([]byte("x"))
		over()
		c.Commit()
		c.Commit()
	}
	expect(t, dir)
}

func TestStore_AfterARestart_KeepsWhatTasksStartFrom(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(dir)
	for id := range checkpoint.ID(3) {
		keep(s, "j", id+1, "a", fmt.Sprint(id+1))
	}
	c := s.Create("j", 4, "a") // is being written when the process dies
	c.Write([]byte("half"))
	s = storeIn(dir)
	if path, ok := s.Path("j", 2, "a"); !ok || filepath.Base(path) != "a" {
		t.Error("the copy is not found by the next process")
	}
	s.Restored("j", 2)
	expect(t, dir, "j/chk-2/a=2")
	c.Abort()
}

func TestStore_Sweep_RemovesJobsThatAreLongGone(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(dir)
	for n := range MaxJobs + 3 {
		j := job.ID(fmt.Sprintf("j%03d", n))
		keep(s, j, 1, "a", "")
		age := time.Duration(n) * time.Minute
		if n < 2 {
			age = SafeAge + time.Minute
		}
		if err := os.Chtimes(filepath.Join(dir, string(j)), time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s = storeIn(dir)
	s.Path("another", 1, "a")
	got := content(t, dir)
	if len(got) != MaxJobs {
		t.Errorf("copies of %d jobs are left, want %d", len(got), MaxJobs)
	}
	for _, gone := range []string{"j000", "j001", fmt.Sprintf("j%03d", MaxJobs+2)} {
		if _, ok := got[gone+"/chk-1/a"]; ok {
			t.Errorf("job %s is still there", gone)
		}
	}
}

func TestKeep_LinksAndDoesNotCopy(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(filepath.Join(dir, "local"))
	if err := os.Mkdir(filepath.Join(dir, "local"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Keep("j", 1, "a", file)
	s.Keep("j", 1, "a", file)
	path, ok := s.Path("j", 1, "a")
	one, err1 := os.Stat(file)
	two, err2 := os.Stat(path)
	if !ok || err1 != nil || err2 != nil || !os.SameFile(one, two) || !s.Links() || s.Errors() != 0 {
		t.Errorf("%t, %v, %v, %t, %d errors", ok, err1, err2, s.Links(), s.Errors())
	}
	s.Keep("j", 1, "b", filepath.Join(dir, "none"))
	if s.Errors() != 1 {
		t.Errorf("%d errors, want one", s.Errors())
	}
}

func TestStore_WithoutADirectory_CountsAndGoesOn(t *testing.T) {
	s := New(zap.NewNop(), func() (string, error) { return "", fs.ErrPermission })
	keep(s, "j", 1, "a", "x")
	s.Keep("j", 1, "a", "/dev/null")
	s.Completed("j", 1)
	s.Remove("j", 1, "a")
	if _, ok := s.Path("j", 1, "a"); ok || s.Errors() == 0 {
		t.Errorf("there: %t, %d errors", ok, s.Errors())
	}
}

// Many goroutines at once, as tasks, segments and notifications are: what is left is of the latest completed checkpoint and newer ones, and whole.
func TestStore_UsedByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := storeIn(dir)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for i := range 60 {
				id := checkpoint.ID(1 + i/2 + r.IntN(3))
				switch r.IntN(6) {
				case 0:
					s.Completed("j", id)
				case 1:
					s.Aborted("j", id+1)
				default:
					keep(s, "j", id, fmt.Sprintf("%d-%d", n, i), fmt.Sprint(id))
				}
			}
		})
	}
	wg.Wait()
	s.Completed("j", 30)
	for name, data := range content(t, dir) {
		var id checkpoint.ID
		if _, err := fmt.Sscanf(name, "j/chk-%d/", &id); err != nil || id < 30 || data != fmt.Sprint(id) {
			t.Errorf("%s=%s", name, data)
		}
	}
}
