package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/location"
)

// shelf is stored checkpoints by directory; a bad one has metadata that cannot be read.
type shelf map[string]bool

func (s shelf) files(dir string) ([]string, error) {
	var out []string
	for at := range s {
		if rest, ok := location.Below(dir, at); ok {
			out = append(out, rest+"/"+MetadataFile)
		} else if location.Same(dir, at) {
			out = append(out, MetadataFile)
		} else if dir == "" && !location.Is(at) {
			out = append(out, at+"/"+MetadataFile)
		}
	}
	return out, nil
}

func (s shelf) read(dir string) (*Metadata, error) {
	whole, ok := s[dir]
	switch {
	case !ok:
		return nil, errors.New("nothing there")
	case !whole:
		return nil, ErrChecksum
	}
	return &Metadata{JobName: dir}, nil
}

func TestChoose(t *testing.T) {
	s := shelf{"j/chk-9": true, "j/chk-10": true, "j/chk-11": false, "k/chk-1": false, "k/chk-2": false, "savepoint-a-b": true, "/abs/j/chk-3": true,
		"s3://b/j/chk-3?region=r": true}
	for _, c := range []struct {
		dir      string
		fallback bool
		want     string // the directory, or a part of the error
		skipped  int
	}{
		{"j/chk-9", false, "j/chk-9", 0},
		{"savepoint-a-b", true, "savepoint-a-b", 0},
		{"j", false, "error: checkpoint j/chk-11 cannot be used: checksum mismatch; --fallback goes to the next older one", 0},
		{"j", true, "j/chk-10", 1},
		{"j/chk-11", false, "error: checkpoint j/chk-11 cannot be used", 0},
		{"j/chk-11", true, "j/chk-10", 1},
		{"j/chk-10", true, "j/chk-10", 0},
		{"j/chk-12", false, "error: no completed checkpoint", 0},
		{"j/chk-12", true, "j/chk-10", 1}, // it was never completed; the one before it cannot be read
		{"k", true, "error: checkpoint k/chk-2 cannot be used: checksum mismatch\ncheckpoint k/chk-1 cannot be used: checksum mismatch\nthere is no older one", 0},
		{"none", true, "error: no completed checkpoint", 0},
		{"/abs/j", false, "/abs/j/chk-3", 0},
		{"s3://b/j?region=r", false, "s3://b/j/chk-3?region=r", 0},
		{"s3://b/j/chk-4?region=r", true, "s3://b/j/chk-3?region=r", 0},
		{"/abs/j/chk-4", true, "/abs/j/chk-3", 0},
	} {
		got, err := Choose(c.dir, c.fallback, s.files, s.read)
		text := got.Dir
		if err != nil {
			text = "error: " + err.Error()
		}
		if !strings.HasPrefix(text, c.want) || err == nil && (text != c.want || got.Metadata.JobName != c.want) || len(got.Skipped) != c.skipped {
			t.Errorf("%s, fallback %t: %s, skipped %v", c.dir, c.fallback, text, got.Skipped)
		}
	}
}

// What is chosen is the newest that can be read at most as new as what was asked for, and without fallback nothing is ever passed over.
func TestChoose_Property(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, newest, best := shelf{}, 0, 0
		for n := 1; n <= 12; n++ {
			if r.IntN(2) == 0 {
				continue
			}
			whole := r.IntN(2) == 0
			s[fmt.Sprintf("j/chk-%d", n)] = whole
			newest = n
			if whole {
				best = n
			}
		}
		got, err := Choose("j", true, s.files, s.read)
		if (err == nil) != (best > 0) || best > 0 && got.Dir != fmt.Sprintf("j/chk-%d", best) {
			t.Fatalf("seed %d: %s, %v of %v", seed, got.Dir, err, s)
		}
		got, err = Choose("j", false, s.files, s.read)
		if (err == nil) != (best > 0 && best == newest) || err == nil && got.Dir != fmt.Sprintf("j/chk-%d", newest) {
			t.Fatalf("seed %d, no fallback: %s, %v of %v", seed, got.Dir, err, s)
		}
	}
}

// FLINK-22502: unreadable checkpoints were skipped without a word, and an older state was used.
func TestFault_B91_UnreadableCheckpoint_IsNeverSkippedInSilence(t *testing.T) {
	s := shelf{"j/chk-1": true, "j/chk-2": true, "j/chk-3": false}
	if got, err := Choose("j", false, s.files, s.read); err == nil || !strings.Contains(err.Error(), "chk-3") {
		t.Errorf("chose %s, %v", got.Dir, err)
	}
	got, err := Choose("j", true, s.files, s.read)
	if err != nil || got.Dir != "j/chk-2" || len(got.Skipped) != 1 || !strings.Contains(got.Skipped[0].Error(), "chk-3") {
		t.Errorf("chose %s, skipped %v, %v", got.Dir, got.Skipped, err)
	}
}

func TestNewestFirst_TakesCompletedCheckpointsOnly(t *testing.T) {
	got := NewestFirst([]string{
		"chk-2/_metadata", "chk-10/_metadata", "chk-10/a-0-a1-c10.state", "chk-11/a-0-a1-c11.state", "chk-03/_metadata", "chk-x/_metadata", "_metadata",
		"deep/chk-4/_metadata", "chk-5/deep/_metadata", "savepoint-a-b/_metadata",
	})
	if want := []string{"chk-10", "chk-2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestFiles_AreThoseThatMetadataRefersTo(t *testing.T) {
	md := sample()
	want := []string{"per-origin-0-a1-c7.state"}
	if diff := cmp.Diff(want, md.Files()); diff != "" {
		t.Error(diff)
	}
	if err := md.CheckFiles([]string{MetadataFile, want[0]}); err != nil {
		t.Error(err)
	}
	if err := md.CheckFiles([]string{MetadataFile}); err == nil || err.Error() != "state file per-origin-0-a1-c7.state is missing" {
		t.Errorf("%v", err)
	}
}
