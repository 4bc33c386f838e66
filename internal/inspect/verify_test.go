package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage"
)

func TestRead_TakesTheDirectoryItsMetadataAndAURL(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	store(t, dir, md, files)
	for _, location := range []string{dir, dir + "/", dir + "/" + checkpoint.MetadataFile, "file://" + dir} {
		s, err := Read(t.Context(), location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
		} else if diff := cmp.Diff(md, s.Metadata); diff != "" {
			t.Errorf("%s: %s", location, diff)
		}
	}
	t.Chdir(dir)
	if _, err := Read(t.Context(), checkpoint.MetadataFile); err != nil {
		t.Error(err)
	}
}

func TestRead_SaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(t.Context(), dir+"/none"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a directory that does not exist: %v", err)
	}
	if _, err := os.Stat(dir + "/none"); err == nil {
		t.Error("looking has made the directory")
	}
	if _, err := Read(t.Context(), dir); !errors.Is(err, ErrNotCheckpoint) {
		t.Errorf("a directory without metadata: %v", err)
	}
	write(t, filepath.Join(dir, checkpoint.MetadataFile), []byte("WEIR, but no more"))
	if _, err := Read(t.Context(), dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("damaged metadata: %v", err)
	}
}

// One who may only read can look, because nothing is written: not even a file that is removed at once.
func TestVerify_LeavesTheDirectoryAlone(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	store(t, dir, md, files)
	long := time.UnixMilli(1_600_000_000_000)
	if err := os.Chtimes(dir, long, long); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, dir); len(v.Damage) > 0 {
		t.Errorf("%v", v.Damage)
	}
	info, err := os.Stat(dir)
	if err != nil || !info.ModTime().Equal(long) {
		t.Errorf("the directory was written to at %v, %v", info.ModTime(), err)
	}
}

func TestVerify_FindsEachDamage(t *testing.T) {
	const one, two = "sums-0-a1-c7.state", "sums-1-a1-c7.state"
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		want []string
	}{
		"none": {func(*testing.T, string) {}, nil},
		"missing file": {
			func(t *testing.T, dir string) { remove(t, filepath.Join(dir, one)) },
			[]string{
				"operator sums subtask 0: keyed state: file " + one + " is missing",
				"operator out subtask 0: list state: file " + one + " is missing",
			},
		},
		"flipped bit": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, two), []byte("keyed onf")) },
			[]string{"operator sums subtask 1: keyed state: " + two + " bytes 0 to 9 are damaged: checksum mismatch: it is 3758f098, recorded was 2408036c"},
		},
		"truncated": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, one), []byte("keyed 0item")) },
			[]string{"operator out subtask 0: list state: file " + one + " is truncated: it has 11 bytes, the state ends at byte 12"},
		},
		"empty": {
			func(t *testing.T, dir string) { write(t, filepath.Join(dir, two), nil) },
			[]string{"operator sums subtask 1: keyed state: file " + two + " is truncated: it has 0 bytes, the state ends at byte 9"},
		},
		"directory in its place": {
			func(t *testing.T, dir string) {
				remove(t, filepath.Join(dir, two))
				if err := os.Mkdir(filepath.Join(dir, two), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"operator sums subtask 1: keyed state: file " + two + " is missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			md, files := sample()
			store(t, dir, md, files)
			c.harm(t, dir)
			v := verify(t, dir)
			if diff := cmp.Diff(c.want, lines(v.Damage)); diff != "" {
				t.Error(diff)
			}
			if v.Pieces != 4 || v.Bytes != 5+7+5+9 {
				t.Errorf("%d pieces with %d bytes", v.Pieces, v.Bytes)
			}
		})
	}
}

func TestVerify_FindsInlineDamageAndMissingSubtasks(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	md.Vertices[0].Subtasks[0].Operators[0].Items.Handle.CRC32C++
	md.Vertices[1].Subtasks = md.Vertices[1].Subtasks[:1]
	store(t, dir, md, files)
	got := lines(verify(t, dir).Damage)
	if len(got) != 2 || !strings.HasPrefix(got[0], "operator flights subtask 0: list state: state in 5 inline bytes: checksum mismatch") ||
		got[1] != "vertex sums subtask 1: its state is not in the metadata" {
		t.Errorf("%q", got)
	}
}

func TestVerify_EndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	md, files := sample()
	store(t, dir, md, files)
	s, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Every byte of every file matters: wherever one is changed, the verification or the reading fails.
func TestVerify_FindsEveryChangedByte(t *testing.T) {
	md, files := sample()
	encoded, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	files[checkpoint.MetadataFile] = encoded
	dir := t.TempDir()
	for name, data := range files {
		for i := range data {
			store(t, dir, md, files)
			harmed := append([]byte(nil), data...)
			harmed[i] ^= 0x10
			write(t, filepath.Join(dir, name), harmed)
			s, err := Read(t.Context(), dir)
			if err != nil {
				continue
			}
			if v, err := s.Verify(t.Context()); err != nil || len(v.Damage) != 1 {
				t.Fatalf("byte %d of %s: %v, %v", i, name, v.Damage, err)
			}
		}
	}
}

func verify(t *testing.T, dir string) Verified {
	t.Helper()
	s, err := Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func lines[T fmt.Stringer](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}
