package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/internal/storage"
)

// RunObjects is Run for an object store: it need not refuse a name that is a file and a directory at once.
func RunObjects(t *testing.T, open func(t *testing.T) storage.Storage) { run(t, open, objectAndPrefix) }

// Run checks that the storages that open gives keep the contract of storage.Storage. Each is empty and for one test.
func Run(t *testing.T, open func(t *testing.T) storage.Storage) { run(t, open, fileAndDirectory) }

func run(t *testing.T, open func(t *testing.T) storage.Storage, exclusion func(*testing.T, storage.Storage)) {
	for _, c := range []struct {
		name string
		test func(*testing.T, storage.Storage)
	}{
		{"Commit_MakesTheWholeFileReadable", commitMakesReadable},
		{"BeforeCommit_TheFileIsInvisible", uncommittedIsInvisible},
		{"Writer_IsUsedUpOnce", writerIsUsedUpOnce},
		{"Replace_LeavesOpenFilesAlone", replaceLeavesOpenFiles},
		{"CreateOnly_LeavesAnExistingFileAlone", createOnlyKeeps},
		{"CreateOnly_HasOneWinner", createOnlyHasOneWinner},
		{"ConcurrentCommits_LeaveOneWholeFile", concurrentCommits},
		{"ReadFile_AtItsLimit", readFileLimit},
		{"Missing_IsErrNotFound", missingIsNotFound},
		{"List_IsSortedAndStaysInTheDirectory", listIsSorted},
		{"Remove_IsIdempotent", removeIsIdempotent},
		{"RemoveAll_IsIdempotentAndStaysInTheDirectory", removeAllStays},
		{"OddNames_AreNamesLikeOthers", oddNames},
		{"BadNames_AreRefused", badNames},
		{"CanceledContext_DoesNothing", canceledContext},
		{"MkdirAll_CanBeRepeated", mkdirAll},
		{"FileAndDirectory_DoNoHarmToEachOther", exclusion},
		{"DiscardCheckpoint_IsIdempotent", discardCheckpoint},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

func create(t *testing.T, s storage.Storage, name string, parts ...string) storage.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), name)
	must(t, err)
	for _, p := range parts {
		if n, err := io.WriteString(w, p); err != nil || n != len(p) {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(p), err)
		}
	}
	return w
}

func put(t *testing.T, s storage.Storage, name, content string) {
	t.Helper()
	must(t, s.WriteFile(t.Context(), name, []byte(content), storage.Replace))
}

func wantContent(t *testing.T, s storage.Storage, name, content string) {
	t.Helper()
	got, err := s.ReadFile(t.Context(), name, 1<<20)
	if err != nil || string(got) != content {
		t.Errorf("%q holds %q (%v), want %q", name, got, err, content)
	}
}

func wantList(t *testing.T, s storage.Storage, dir string, want ...string) {
	t.Helper()
	infos, err := s.List(t.Context(), dir)
	must(t, err)
	var got []string
	for _, i := range infos {
		got = append(got, i.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list of %q is %q, want %q", dir, got, want)
	}
}

func commitMakesReadable(t *testing.T, s storage.Storage) {
	must(t, create(t, s, "job/chk-1/a.state", "hello ", "", "world").Commit())
	must(t, create(t, s, "empty").Commit())
	wantContent(t, s, "job/chk-1/a.state", "hello world")
	wantContent(t, s, "empty", "")
	info, err := s.Stat(t.Context(), "job/chk-1/a.state")
	if err != nil || info.Path != "job/chk-1/a.state" || info.Size != 11 {
		t.Errorf("stat is %+v, %v", info, err)
	}
	f, err := s.Open(t.Context(), "job/chk-1/a.state")
	must(t, err)
	defer func() { must(t, f.Close()) }()
	if f.Size() != 11 {
		t.Errorf("size is %d", f.Size())
	}
	p := make([]byte, 5)
	if n, err := f.ReadAt(p, 6); n != 5 || (err != nil && !errors.Is(err, io.EOF)) || string(p) != "world" {
		t.Errorf("read %q, %d, %v", p, n, err)
	}
	if n, err := f.ReadAt(p, 9); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("read over the end: %d, %v", n, err)
	}
}

func uncommittedIsInvisible(t *testing.T, s storage.Storage) {
	w := create(t, s, "d/f", "half")
	wantList(t, s, "")
	_, err := s.Stat(t.Context(), "d/f")
	wantErr(t, "stat", err, storage.ErrNotFound)
	must(t, s.WriteFile(t.Context(), "d/f", []byte("other"), storage.CreateOnly))
	wantContent(t, s, "d/f", "other")
	w.Abort()
	wantContent(t, s, "d/f", "other")
	wantList(t, s, "d", "d/f")
}

func writerIsUsedUpOnce(t *testing.T, s storage.Storage) {
	w := create(t, s, "f", "x")
	must(t, w.Commit())
	w.Abort()
	wantContent(t, s, "f", "x")
	if w.Commit() == nil {
		t.Error("a second commit succeeds")
	}
	if _, err := w.Write([]byte("y")); err == nil {
		t.Error("a write after the commit succeeds")
	}
	w = create(t, s, "g", "x")
	w.Abort()
	w.Abort()
	if w.Commit() == nil {
		t.Error("a commit after the abort succeeds")
	}
	wantList(t, s, "", "f")
}

func replaceLeavesOpenFiles(t *testing.T, s storage.Storage) {
	put(t, s, "f", "old")
	f, err := s.Open(t.Context(), "f")
	must(t, err)
	put(t, s, "f", "newer")
	p := make([]byte, f.Size())
	if n, err := f.ReadAt(p, 0); n != 3 || (err != nil && !errors.Is(err, io.EOF)) || string(p) != "old" {
		t.Errorf("open file reads %q, %v", p, err)
	}
	must(t, f.Close())
	wantContent(t, s, "f", "newer")
}

func createOnlyKeeps(t *testing.T, s storage.Storage) {
	must(t, s.WriteFile(t.Context(), "d/f", []byte("first"), storage.CreateOnly))
	wantErr(t, "second", s.WriteFile(t.Context(), "d/f", []byte("second"), storage.CreateOnly), storage.ErrExists)
	wantContent(t, s, "d/f", "first")
	must(t, s.Remove(t.Context(), "d/f"))
	must(t, s.WriteFile(t.Context(), "d/f", []byte("third"), storage.CreateOnly))
	wantContent(t, s, "d/f", "third")
	wantList(t, s, "", "d/f")
}

// race runs f n times at once.
func race(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func createOnlyHasOneWinner(t *testing.T, s storage.Storage) {
	const n = 8
	for round := range 10 {
		name := fmt.Sprintf("r%d/f", round)
		errs := make([]error, n)
		race(n, func(i int) {
			errs[i] = s.WriteFile(t.Context(), name, bytes.Repeat([]byte{byte('a' + i)}, 1000), storage.CreateOnly)
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("%d and %d have both created the file", winner, i)
			case err == nil:
				winner = i
			default:
				wantErr(t, "loser", err, storage.ErrExists)
			}
		}
		if winner < 0 {
			t.Fatal("nobody has created the file")
		}
		wantContent(t, s, name, strings.Repeat(string(rune('a'+winner)), 1000))
	}
}

func concurrentCommits(t *testing.T, s storage.Storage) {
	errs := make([]error, 8)
	race(len(errs), func(i int) {
		w, err := s.Create(t.Context(), "new/dir/f")
		if err == nil {
			_, err = w.Write(bytes.Repeat([]byte{byte('a' + i)}, 1000))
			err = errors.Join(err, w.Commit())
		}
		errs[i] = err
	})
	must(t, errors.Join(errs...))
	got, err := s.ReadFile(t.Context(), "new/dir/f", 1000)
	must(t, err)
	if len(got) != 1000 || !bytes.Equal(got, bytes.Repeat(got[:1], 1000)) {
		t.Errorf("the file is a mixture: %q", got)
	}
	wantList(t, s, "", "new/dir/f")
}

func readFileLimit(t *testing.T, s storage.Storage) {
	put(t, s, "f", "12345")
	got, err := s.ReadFile(t.Context(), "f", 5)
	if err != nil || string(got) != "12345" {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	_, err = s.ReadFile(t.Context(), "f", 4)
	wantErr(t, "over the limit", err, storage.ErrTooLarge)
}

func missingIsNotFound(t *testing.T, s storage.Storage) {
	put(t, s, "d/f", "x")
	for _, name := range []string{"g", "d/g", "e/f", "d", "d/f/g"} {
		_, err := s.Open(t.Context(), name)
		wantErr(t, "open "+name, err, storage.ErrNotFound)
		_, err = s.ReadFile(t.Context(), name, 10)
		wantErr(t, "read "+name, err, storage.ErrNotFound)
		_, err = s.Stat(t.Context(), name)
		wantErr(t, "stat "+name, err, storage.ErrNotFound)
	}
}

func listIsSorted(t *testing.T, s storage.Storage) {
	for _, name := range []string{"j/chk-10/a", "j/chk-1/b", "j/chk-1/a", "j/chk-1/sub/c", "j/chk-1.x", "k"} {
		put(t, s, name, name)
	}
	wantList(t, s, "j/chk-1", "j/chk-1/a", "j/chk-1/b", "j/chk-1/sub/c")
	wantList(t, s, "", "j/chk-1.x", "j/chk-1/a", "j/chk-1/b", "j/chk-1/sub/c", "j/chk-10/a", "k")
	wantList(t, s, "j/chk-2")
	wantList(t, s, "k")
	infos, err := s.List(t.Context(), "j/chk-10")
	if err != nil || len(infos) != 1 || infos[0].Size != 10 {
		t.Errorf("list is %+v, %v", infos, err)
	}
}

func removeIsIdempotent(t *testing.T, s storage.Storage) {
	put(t, s, "d/f", "x")
	put(t, s, "d/g", "y")
	for range 2 {
		must(t, s.Remove(t.Context(), "d/f"))
		wantList(t, s, "", "d/g")
	}
	must(t, s.Remove(t.Context(), "never/was"))
}

func removeAllStays(t *testing.T, s storage.Storage) {
	for _, name := range []string{"j/chk-1/a", "j/chk-1/sub/b", "j/chk-10/a", "j/chk-1.x"} {
		put(t, s, name, "x")
	}
	for range 2 {
		must(t, s.RemoveAll(t.Context(), "j/chk-1"))
		wantList(t, s, "", "j/chk-1.x", "j/chk-10/a")
	}
	put(t, s, "j/chk-1/again", "x")
	wantContent(t, s, "j/chk-1/again", "x")
	must(t, s.RemoveAll(t.Context(), "never/was"))
}

func oddNames(t *testing.T, s storage.Storage) {
	names := []string{"with space", " ", "ümläut/日本", "-rf", "--", "...", ".hidden", "a%2Fb", "%", "a:b", "*?[]", "quote'\"", "$HOME", "new\nline", "tab\t",
		"_metadata", "~", "CON", ".tmp", strings.Repeat("x", 255), strings.Repeat("d/", 100) + "deep"}
	for _, name := range names {
		put(t, s, name, name)
		must(t, create(t, s, path.Join("below", name), name).Commit())
	}
	for _, name := range names {
		wantContent(t, s, name, name)
		wantContent(t, s, path.Join("below", name), name)
	}
	infos, err := s.List(t.Context(), "")
	if err != nil || len(infos) != 2*len(names) {
		t.Errorf("%d files are listed (%v), want %d", len(infos), err, 2*len(names))
	}
	for _, name := range names {
		must(t, s.Remove(t.Context(), name))
	}
	must(t, s.RemoveAll(t.Context(), "below"))
	wantList(t, s, "")
}

// each calls every method with name and gives the errors.
func each(ctx context.Context, s storage.Storage, name string) map[string]error {
	out := map[string]error{
		"write file": s.WriteFile(ctx, name, nil, storage.Replace),
		"mkdir":      s.MkdirAll(ctx, name),
		"remove":     s.Remove(ctx, name),
		"remove all": s.RemoveAll(ctx, name),
	}
	_, out["create"] = s.Create(ctx, name)
	_, out["open"] = s.Open(ctx, name)
	_, out["read file"] = s.ReadFile(ctx, name, 1)
	_, out["stat"] = s.Stat(ctx, name)
	if name != "" {
		_, out["list"] = s.List(ctx, name)
	}
	return out
}

func badNames(t *testing.T, s storage.Storage) {
	put(t, s, "keep", "x")
	for _, name := range []string{"", ".", "..", "/", "/abs", "a/", "a//b", "a/./b", "../x", "a/../../x", `a\b`, "a\x00b", "\xff", strings.Repeat("x", 256),
		strings.Repeat("d/", 1100) + "x", ".tmp~1", ".tmp~1/x"} {
		for what, err := range each(t.Context(), s, name) {
			if err == nil {
				t.Errorf("%s of %q succeeds", what, name)
			}
		}
	}
	wantList(t, s, "", "keep")
}

func canceledContext(t *testing.T, s storage.Storage) {
	put(t, s, "keep", "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("job canceled")
	cancel(reason)
	for what, err := range each(ctx, s, "keep") {
		wantErr(t, what, err, reason)
	}
	wantContent(t, s, "keep", "x")
}

func mkdirAll(t *testing.T, s storage.Storage) {
	for range 2 {
		must(t, s.MkdirAll(t.Context(), "j/chk-1"))
	}
	wantList(t, s, "")
	must(t, create(t, s, "j/chk-1/f", "x").Commit())
	must(t, s.MkdirAll(t.Context(), "j/chk-1"))
	wantContent(t, s, "j/chk-1/f", "x")
}

func fileAndDirectory(t *testing.T, s storage.Storage) {
	put(t, s, "d/f", "x")
	if err := s.WriteFile(t.Context(), "d", []byte("y"), storage.Replace); err == nil {
		t.Error("a file takes the place of a directory")
	}
	if err := s.WriteFile(t.Context(), "d/f/g", []byte("y"), storage.Replace); err == nil {
		t.Error("a file is created below a file")
	}
	if err := s.MkdirAll(t.Context(), "d/f"); err == nil {
		t.Error("a directory is made in the place of a file")
	}
	if err := s.Remove(t.Context(), "d"); err == nil {
		t.Error("Remove removes a directory")
	}
	wantContent(t, s, "d/f", "x")
	wantList(t, s, "", "d/f")
}

// objectAndPrefix: whether or not a store refuses it, what is in the directory stays.
func objectAndPrefix(t *testing.T, s storage.Storage) {
	put(t, s, "d/f", "x")
	_ = s.WriteFile(t.Context(), "d", []byte("y"), storage.Replace)
	wantContent(t, s, "d/f", "x")
	_ = s.Remove(t.Context(), "d")
	wantContent(t, s, "d/f", "x")
	wantList(t, s, "", "d/f")
	_ = s.MkdirAll(t.Context(), "d/f")
	_ = s.RemoveAll(t.Context(), "d/f")
	wantContent(t, s, "d/f", "x")
	_ = s.WriteFile(t.Context(), "d/f/g", []byte("y"), storage.Replace)
	wantContent(t, s, "d/f", "x")
	must(t, s.RemoveAll(t.Context(), "d"))
	wantList(t, s, "")
}

func discardCheckpoint(t *testing.T, s storage.Storage) {
	for _, name := range []string{"j/chk-1/_metadata", "j/chk-1/a.state", "j/chk-2/a.state", "j/chk-3/_metadata"} {
		put(t, s, name, "x")
	}
	for range 2 {
		must(t, storage.DiscardCheckpoint(t.Context(), s, "j/chk-1"))
		must(t, storage.DiscardCheckpoint(t.Context(), s, "j/chk-2"))
		wantList(t, s, "", "j/chk-3/_metadata")
	}
}
