package lsm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/cached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testGroups = 16

func newCache(t testing.TB) *Cache {
	t.Helper()
	c := NewCache(1 << 20)
	t.Cleanup(c.Close)
	return c
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	return closed(t)(Open(cfg))
}

// closed closes a store at the end of the test.
func closed(t testing.TB) func(s *Store, err error) *Store {
	return func(s *Store, err error) *Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
}

// twin is what a store should have.
type twin map[string]string

func keyOf(group, n int) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(group))) + fmt.Sprint("key ", n)
}

// change is a random Write of up to n entries; a value of "" is a deletion.
func (w twin) change(r *rand.Rand, n int) map[string]string {
	out := map[string]string{}
	for range n {
		key := keyOf(r.IntN(testGroups), r.IntN(100))
		if out[key] = ""; r.IntN(3) > 0 {
			out[key] = strings.Repeat(fmt.Sprint(r.Uint32()), 1+r.IntN(20))
		}
	}
	for key, v := range out {
		if w[key] = v; v == "" {
			delete(w, key)
		}
	}
	return out
}

func write(t testing.TB, s *Store, entries map[string]string) {
	t.Helper()
	if err := tryWrite(t.Context(), s, entries); err != nil {
		t.Fatal(err)
	}
}

func tryWrite(ctx context.Context, s *Store, entries map[string]string) error {
	_, err := s.Write(ctx, func(w cached.Writer) error {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			v := entries[key]
			err := error(nil)
			if v == "" {
				err = w.Delete([]byte(key))
			} else {
				err = w.Set([]byte(key), []byte(v))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// clip is the entries of some key groups.
func (w twin) clip(first, end int) twin {
	out := maps.Clone(w)
	maps.DeleteFunc(out, func(k, _ string) bool { g := groupOf([]byte(k)); return g < first || g >= end })
	return out
}

func (w twin) check(t *testing.T, v cached.View, what string) {
	t.Helper()
	got := twin{}
	var before []byte
	if err := v.Range(groupStart(0), groupStart(testGroups), func(key, value []byte) error {
		if bytes.Compare(before, key) >= 0 {
			t.Errorf("%s: key %q comes behind %q", what, key, before)
		}
		before = slices.Clone(key)
		got[string(key)] = string(value)
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !maps.Equal(got, w) {
		t.Fatalf("%s: there are %d entries, %d are wanted, or some differ", what, len(got), len(w))
	}
	for group := range testGroups {
		for n := range 100 {
			key := keyOf(group, n)
			value, done, err := v.Get([]byte(key))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if string(value) != w[key] {
				t.Fatalf("%s: key %q has %q, want %q", what, key, value, w[key])
			}
			if done != nil {
				_ = done.Close()
			}
		}
	}
}

func (w twin) checkNow(t *testing.T, s *Store, what string) {
	t.Helper()
	v := s.View()
	w.check(t, v, what)
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// old is a moment that is held against what was then.
type old struct {
	view   cached.View
	linked cached.Linked
	had    twin
}

// A store, its views, its links, and stores that were restored from them agree with Go maps, whatever is merged meanwhile.
func TestStore_AgreesWithAMap(t *testing.T) {
	cache := newCache(t)
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			root := t.TempDir()
			dir := func(n int) string { return filepath.Join(root, fmt.Sprint(n)) }
			s, w := open(t, Config{Dir: dir(0), Cache: cache}), twin{}
			var olds []old
			contents := map[string][]byte{}
			for step := range 40 {
				write(t, s, w.change(r, 1+r.IntN(200)))
				switch r.IntN(8) {
				case 0:
					olds = append(olds, old{s.View(), link(t, s, contents), maps.Clone(w)})
				case 1:
					s.credit = 1 << 40
					if _, err := s.Tidy(t.Context()); err != nil {
						t.Fatal(err)
					}
				case 2:
					parts, first := []cached.Part{}, 0
					l := link(t, s, contents)
					whole := r.IntN(2) == 0
					for first < testGroups {
						end := first + 1 + r.IntN(testGroups-first)
						if whole {
							end = testGroups
						}
						parts = append(parts, part(l.Files(), first, end, whole))
						first = end
					}
					if !whole && r.IntN(2) == 0 { // only one part of it is ours from now on
						p := parts[r.IntN(len(parts))]
						parts, w = []cached.Part{p}, w.clip(p.First, p.End)
					}
					s = closed(t)(Restore(t.Context(), Config{Dir: dir(step + 1), Cache: cache}, parts))
					if err := l.Remove(); err != nil {
						t.Fatal(err)
					}
				}
				w.checkNow(t, s, fmt.Sprint("step ", step))
			}
			for i, o := range olds {
				o.had.check(t, o.view, fmt.Sprint("view ", i))
				again := closed(t)(Restore(t.Context(), Config{Dir: dir(1000 + i), Cache: cache}, []cached.Part{part(o.linked.Files(), 0, testGroups, true)}))
				o.had.checkNow(t, again, fmt.Sprint("links ", i))
				if err := errors.Join(o.view.Close(), o.linked.Remove()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// link links and holds the files to their promise: a name stands for one content, whichever stores gave it.
func link(t *testing.T, s *Store, contents map[string][]byte) cached.Linked {
	t.Helper()
	l, err := s.Link()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Files() {
		data, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if had, ok := contents[f.Name]; ok && !bytes.Equal(had, data) || int64(len(data)) != f.Size || strings.ContainsAny(f.Name, "/ ") {
			t.Fatalf("file %s of %d bytes has another content than before, or another size than %d", f.Name, len(data), f.Size)
		}
		contents[f.Name] = data
	}
	return l
}

func names(l cached.Linked) map[string]int64 {
	out := map[string]int64{}
	for _, f := range l.Files() {
		out[f.Name] = f.Size
	}
	return out
}

// What has not changed keeps its name, in a store and in one that was restored from one part, clipped or not; and nothing of two restored stores is
// called alike that is not the same.
func TestLink_KeepsTheNamesOfWhatIsTheSame(t *testing.T) {
	cache, root, contents := newCache(t), t.TempDir(), map[string][]byte{}
	r, w := rand.New(rand.NewPCG(1, 2)), twin{}
	s := open(t, Config{Dir: filepath.Join(root, "first"), Cache: cache})
	write(t, s, w.change(r, 500))
	before := names(link(t, s, contents))
	write(t, s, w.change(r, 50))
	l := link(t, s, contents)
	if after := names(l); shared(before, after) != 1 {
		t.Errorf("%v and %v share %d files, want the first table", before, after, shared(before, after))
	}
	for i, p := range []cached.Part{part(l.Files(), 0, testGroups, true), part(l.Files(), 3, 9, false), part(l.Files(), 9, 12, false)} {
		next := closed(t)(Restore(t.Context(), Config{Dir: filepath.Join(root, fmt.Sprint(i)), Cache: cache}, []cached.Part{p}))
		mine := w.clip(p.First, p.End)
		for range 2 {
			write(t, next, mine.change(r, 20))
			if got := names(link(t, next, contents)); shared(names(l), got) != 2 {
				t.Errorf("part %d: %v and %v share %d files, want both tables", i, names(l), got, shared(names(l), got))
			}
		}
	}
}

func shared(a, b map[string]int64) (n int) {
	for name, size := range a {
		if b[name] == size {
			n++
		}
	}
	return n
}

// A disk that is full fails the write with an error that says where and what to do; what was there before is still right, and no snapshot is given that
// could lack something.
func TestStore_FullDiskIsAnError(t *testing.T) {
	cache := newCache(t)
	for at := range 40 {
		mem := vfs.NewMem()
		count, full := 0, false
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if !full || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			if count++; count > at {
				return &os.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		r, w := rand.New(rand.NewPCG(uint64(at), 2)), twin{}
		s, err := Open(Config{Dir: "data", Cache: cache, FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, w.change(r, 100))
		full = true
		next := maps.Clone(w)
		err = tryWrite(t.Context(), s, next.change(r, 100))
		if err == nil {
			w = next
			var l cached.Linked
			if l, err = s.Link(); err == nil {
				full = false
				again, e := Restore(t.Context(), Config{Dir: "again", Cache: cache, FS: fs}, []cached.Part{part(l.Files(), 0, testGroups, true)})
				if e != nil {
					t.Fatal(e)
				}
				w.checkNow(t, again, fmt.Sprintf("links after %d writes", at))
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if err != nil && (!errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "data") || !strings.Contains(err.Error(), "--data-dir")) {
			t.Errorf("after %d writes: got %v, want an error that names directory and remedy", at, err)
		}
		full = false
		if err := s.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("after %d writes: close: %v", at, err)
		}
	}
}

// A block that was damaged is an error, never another value.
func TestStore_DamageIsAnError(t *testing.T) {
	cache, dir := NewCache(0), t.TempDir()
	t.Cleanup(cache.Close)
	s, w := open(t, Config{Dir: dir, Cache: cache}), twin{}
	write(t, s, w.change(rand.New(rand.NewPCG(1, 1)), 2000))
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0x55}, 64), 500); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	err = v.Range(groupStart(0), groupStart(testGroups), func(key, value []byte) error {
		if w[string(key)] != string(value) {
			t.Errorf("key %q has %q, want %q", key, value, w[string(key)])
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want an error that names the directory", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

func TestRestore_RefusesWhatIsNoSnapshot(t *testing.T) {
	cache, root := newCache(t), t.TempDir()
	path := filepath.Join(root, "file")
	if err := os.WriteFile(path, []byte("weir lsm bundle 1\n\x05../xx\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, files := range [][]cached.File{
		nil, one("a-1.bundle", path), one("foreign", path), one("a-000001.sst", path), one("a-1.bundle", filepath.Join(root, "none")),
	} {
		if _, err := Restore(t.Context(), Config{Dir: filepath.Join(root, fmt.Sprint(i)), Cache: cache}, []cached.Part{part(files, 0, testGroups, true)}); err == nil {
			t.Errorf("files %v were restored", files)
		}
	}
}

func one(name, path string) []cached.File { return []cached.File{{Name: name, Path: path, Size: 1}} }

func part(files []cached.File, first, end int, whole bool) cached.Part {
	return cached.Part{Files: files, First: first, End: end, Whole: whole}
}

func FuzzUnbundle(f *testing.F) {
	f.Add([]byte(bundleMagic + "\x01a\x02bc"))
	f.Add([]byte(bundleMagic + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = unbundle(data, func(name string, _ []byte) error {
			if name != filepath.Base(name) {
				t.Errorf("a file is called %q", name)
			}
			return nil
		})
	})
}
