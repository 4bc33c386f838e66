package storage_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// childMode makes the test binary run one of the children below: what they do to their own process must not happen to the tests.
const childMode = "WEIR_STORAGE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
		os.Exit(m.Run())
	case "file-size-limit":
		exit(writeOverTheLimit(os.Args[1]))
	case "write-forever":
		exit(writeForever(os.Args[1]))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t *testing.T, mode, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, dir)
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	return cmd
}

func openLocal(t testing.TB, dir string) *storage.Local {
	t.Helper()
	l, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// entries are all names on the disk, temporary ones too.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(file string, e os.DirEntry, err error) error {
		if file != dir {
			out = append(out, strings.TrimPrefix(file, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLocal_KeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return openLocal(t, t.TempDir()) })
}

func TestLocal_LeavesNoTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	l := openLocal(t, dir)
	for range 2 {
		w, err := l.Create(t.Context(), "aborted")
		if err != nil {
			t.Fatal(err)
		}
		w.Abort()
		for _, mode := range []storage.Mode{storage.Replace, storage.CreateOnly} {
			if err := l.WriteFile(t.Context(), fmt.Sprintf("f%d", mode), []byte("x"), mode); err != nil && !errors.Is(err, storage.ErrExists) {
				t.Fatal(err)
			}
		}
	}
	if got := entries(t, dir); !slices.Equal(got, []string{"f1", "f2"}) {
		t.Errorf("the directory holds %q", got)
	}
}

// A process that dies leaves its temporary files behind.
func TestLocal_TornTemporaryFiles_AreInvisibleAndGoWithTheirDirectory(t *testing.T) {
	dir := t.TempDir()
	l := openLocal(t, dir)
	w, err := l.Create(t.Context(), "j/chk-1/f")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); len(got) != 3 {
		t.Fatalf("the directory holds %q", got)
	}
	if infos, err := openLocal(t, dir).List(t.Context(), ""); err != nil || len(infos) > 0 {
		t.Errorf("listed are %v, %v", infos, err)
	}
	if err := l.RemoveAll(t.Context(), "j/chk-1"); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); !slices.Equal(got, []string{"j"}) {
		t.Errorf("the directory holds %q", got)
	}
	if err := w.Commit(); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("commit into the removed directory: %v", err)
	}
}

func TestLocal_DirectoryRemovedByAnotherProcess_IsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	l := openLocal(t, dir)
	for range 2 {
		if err := l.WriteFile(t.Context(), "j/chk-1/f", []byte("x"), storage.CreateOnly); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "j")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLocal_FileOverTheLimitOfTheSystem_IsNotPublished(t *testing.T) {
	if out, err := child(t, "file-size-limit", t.TempDir()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// writeOverTheLimit is a disk that becomes full in the middle of a file, as nearly as one can have it without being root.
func writeOverTheLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	l, err := storage.NewLocal(dir)
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
		return err
	}
	bg := context.Background()
	w, err := l.Create(bg, "f")
	if err != nil {
		return err
	}
	if n, err := w.Write(make([]byte, 100<<10)); !errors.Is(err, syscall.EFBIG) || n != 64<<10 || err.Error() != "write f: file too large" {
		return fmt.Errorf("wrote %d bytes: %w", n, err)
	}
	if err := w.Commit(); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("commit after the failed write: %w", err)
	}
	if err := l.WriteFile(bg, "g", make([]byte, 100<<10), storage.CreateOnly); !errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("write file: %w", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return fmt.Errorf("left over: %v, %w", left, err)
	}
	return l.WriteFile(bg, "small", make([]byte, 64<<10), storage.CreateOnly)
}

func TestLocal_KilledProcess_LeavesWholeFilesOnly(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		cmd := child(t, "write-forever", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		published := 0
		for published < 20+round && lines.Scan() {
			published++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			published++
		}
		if err := cmd.Wait(); err == nil || published < 20 {
			t.Fatalf("the child ended by itself after %d files: %v", published, err)
		}
		l := openLocal(t, dir)
		infos, err := l.List(t.Context(), "d")
		if err != nil || len(infos) < published {
			t.Fatalf("%d files are there, %d were reported as durable (%v)", len(infos), published, err)
		}
		for _, i := range infos {
			if i.Size != fileBytes {
				t.Fatalf("%s has %d bytes", i.Path, i.Size)
			}
		}
		if err := l.RemoveAll(t.Context(), "d"); err != nil {
			t.Fatal(err)
		}
		if left := entries(t, dir); len(left) > 0 {
			t.Fatalf("left over: %q", left)
		}
	}
}

const fileBytes = 300_000

func writeForever(dir string) error {
	l, err := storage.NewLocal(dir)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := l.WriteFile(context.Background(), fmt.Sprintf("d/%d", i), make([]byte, fileBytes), storage.Mode(1+i%2)); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestNewLocal_UnwritableRoot_IsOneClearLine(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, filepath.Join(dir, "new")} {
		_, err := asNobody(func() (storage.Storage, error) { return storage.NewLocal(root) })
		want := "checkpoint directory " + root + " is not writable: permission denied; choose another directory, or let this user write there"
		if err == nil || err.Error() != want {
			t.Errorf("error is\n%v, want\n%s", err, want)
		}
	}
}

// asNobody runs f without the rights of root, if it has them, on a thread that ends with it.
func asNobody[T any](f func() (T, error)) (out T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0) // it has no errors
		}
		out, err = f()
	}()
	<-done
	return out, err
}

func TestLocal_RootMayBeALink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	l := openLocal(t, filepath.Join(dir, "link"))
	if err := l.WriteFile(t.Context(), "d/f", []byte("x"), storage.Replace); err != nil {
		t.Fatal(err)
	}
	if infos, err := l.List(t.Context(), ""); err != nil || len(infos) != 1 || infos[0].Path != "d/f" {
		t.Errorf("listed are %v, %v", infos, err)
	}
}

// Any sequence of calls has the same results on the disk as in the fake.
func TestLocal_AgreesWithTheFake(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		l, m := openLocal(t, t.TempDir()), storagetest.NewMem()
		for step := range 60 {
			name := []string{"a/x", "a/y", "b/x", "b/c/z", "top"}[rng.IntN(5)]
			what, data := rng.IntN(7), []byte(strings.Repeat("d", rng.IntN(9)))
			a, b := outcome(t, l, what, name, data), outcome(t, m, what, name, data)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("seed %d step %d: call %d of %s differs (-disk +fake):\n%s", seed, step, what, name, diff)
			}
		}
	}
}

// outcome does one call and lists what is there then.
func outcome(t *testing.T, s storage.Storage, what int, name string, data []byte) string {
	var err error
	var got []byte
	switch what {
	case 0:
		err = s.WriteFile(t.Context(), name, data, storage.CreateOnly)
	case 1:
		err = s.WriteFile(t.Context(), name, data, storage.Replace)
	case 2:
		err = s.Remove(t.Context(), name)
	case 3:
		err = s.RemoveAll(t.Context(), filepath.Dir(name)+"/x")
	case 4:
		got, err = s.ReadFile(t.Context(), name, 5)
	case 5:
		err = storage.DiscardCheckpoint(t.Context(), s, "b")
	case 6:
		var w storage.Writer
		if w, err = s.Create(t.Context(), name); err == nil {
			if _, err = w.Write(data); err == nil && len(data)%2 == 0 {
				err = w.Commit()
			}
			w.Abort()
		}
	}
	kind := "ok"
	for _, sentinel := range []error{storage.ErrExists, storage.ErrNotFound, storage.ErrTooLarge} {
		if errors.Is(err, sentinel) {
			kind = sentinel.Error()
		}
	}
	if err != nil && kind == "ok" {
		kind = "another error"
	}
	infos, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := fmt.Sprintf("%s %q", kind, got)
	for _, i := range infos {
		out += fmt.Sprintf(" %s:%d", i.Path, i.Size)
	}
	return out
}

// Storage may not import package checkpoint, but both must mean the same file.
func TestDiscardCheckpoint_MeansTheMetadataFileOfPackageCheckpoint(t *testing.T) {
	m := storagetest.NewMem()
	var ops []string
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		ops = append(ops, op.String())
		return storagetest.Fault{}
	})
	if err := storage.DiscardCheckpoint(t.Context(), m, "j/chk-1"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"remove j/chk-1/" + checkpoint.MetadataFile, "remove-all j/chk-1"}; !slices.Equal(ops, want) {
		t.Errorf("operations are %q, want %q", ops, want)
	}
}

func BenchmarkWriteFile(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			l := openLocal(b, b.TempDir())
			data := make([]byte, size)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if err := l.WriteFile(b.Context(), fmt.Sprintf("j/chk-%d/_metadata", i%100), data, storage.Replace); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Tasks of one process that write into one checkpoint at the same time share the syncs of its directory.
func BenchmarkWriteFile_EightTasks(b *testing.B) {
	l := openLocal(b, b.TempDir())
	data := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		errs := make(chan error, 8)
		for task := range 8 {
			go func() {
				errs <- l.WriteFile(b.Context(), fmt.Sprintf("j/chk-%d/%d.state", i%100, task), data, storage.Replace)
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				b.Fatal(err)
			}
		}
	}
}
