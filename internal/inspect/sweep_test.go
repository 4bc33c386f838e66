package inspect

import (
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

var start = time.UnixMilli(1_700_000_000_000)

// fill puts a checkpoint that is whole, one that was never completed, and late files into a storage.
func fill(t *testing.T, s storage.Storage) {
	t.Helper()
	md, files := sample()
	encoded, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	files[checkpoint.MetadataFile] = encoded
	files["sums-1-a2-c7.state"] = []byte("of a late attempt")
	for name, data := range files {
		put(t, s, "2f6c/chk-7/"+name, data)
	}
	put(t, s, "2f6c/chk-8/sums-0-a1-c8.state", []byte("never completed"))
	put(t, s, "gone/chk-2/sums-0-a1-c2.state", []byte("metadata went first"))
}

func put(t *testing.T, s storage.Storage, name string, data []byte) {
	t.Helper()
	if err := s.WriteFile(t.Context(), name, data, storage.Replace); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, s storage.Storage) (out []string) {
	t.Helper()
	infos, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		out = append(out, info.Path)
	}
	return out
}

var (
	orphans = []string{"2f6c/chk-7/sums-1-a2-c7.state", "2f6c/chk-8/sums-0-a1-c8.state", "gone/chk-2/sums-0-a1-c2.state"}
	whole   = []string{"2f6c/chk-7/_metadata", "2f6c/chk-7/sums-0-a1-c7.state", "2f6c/chk-7/sums-1-a1-c7.state"}
)

func TestSweep_RemovesOrphansOfSafeAge(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	for _, c := range []struct {
		name   string
		now    time.Time
		dryRun bool
		live   map[job.ID]retention.Activity
		want   []string
		left   int
	}{
		{"too young", start.Add(time.Hour - 1), false, nil, nil, 6},
		{"a dry run", start.Add(time.Hour), true, nil, orphans, 6},
		{"of a running job", start.Add(time.Hour), false, map[job.ID]retention.Activity{"2f6c": {Lowest: 7}}, orphans[2:], 5},
		{"old enough", start.Add(time.Hour), false, map[job.ID]retention.Activity{"2f6c": {Lowest: 9}}, orphans[:2], 3},
		{"again", start.Add(time.Hour), false, nil, nil, 3},
	} {
		got, err := Sweep(t.Context(), m, Sweeping{
			SafeAge: time.Hour, Now: c.now, DryRun: c.dryRun, Live: func() map[job.ID]retention.Activity { return c.live },
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if n := len(names(t, m)); n != c.left {
			t.Errorf("%s: %d files are left, want %d", c.name, n, c.left)
		}
	}
	if diff := cmp.Diff(whole, names(t, m)); diff != "" {
		t.Error(diff)
	}
}

// A checkpoint that completes, and a job that begins, while the sweep looks around lose nothing, whatever the safe age.
func TestSweep_BesideARunningJob_DeletesNothingOfIt(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	md, _ := sample()
	calls := 0
	live := func() map[job.ID]retention.Activity {
		calls++
		if calls == 2 { // all is listed and read: what was pending is complete by now
			encoded, err := checkpoint.EncodeMetadata(md)
			if err != nil {
				t.Fatal(err)
			}
			put(t, m, "2f6c/chk-8/_metadata", encoded)
			return map[job.ID]retention.Activity{"2f6c": {Lowest: 9}, "gone": {Lowest: 7}}
		}
		return map[job.ID]retention.Activity{"2f6c": {Lowest: 8}}
	}
	got, err := Sweep(t.Context(), m, Sweeping{Now: start, Live: live})
	if err != nil || !slices.Equal(got, orphans[:1]) {
		t.Errorf("deleted %v, %v", got, err)
	}
}

// FLINK-5063: files of snapshots that came too late were known to nobody and stayed for ever.
func TestFault_B20_FilesOfLateAcks_AreSweptAndReferredOnesStay(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	if _, err := Sweep(t.Context(), m, Sweeping{SafeAge: time.Minute, Now: start.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, names(t, m)); diff != "" {
		t.Error(diff)
	}
}

// FLINK-8540: each deletion listed the directory above it. A sweep lists once, and deletes once for each file.
func TestFault_B79_ASweep_ListsOnce(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	count := make(chan storagetest.Kind, 1000)
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		count <- op.Kind
		return storagetest.Fault{}
	})
	if _, err := Sweep(t.Context(), m, Sweeping{Now: start}); err != nil {
		t.Fatal(err)
	}
	close(count)
	calls := map[storagetest.Kind]int{}
	for kind := range count {
		calls[kind]++
	}
	const unfinished = 2 // directories without metadata, which is seen to be gone
	want := map[storagetest.Kind]int{storagetest.List: 1, storagetest.ReadFile: 1, storagetest.Stat: unfinished, storagetest.Remove: len(orphans) + unfinished}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
}

// A deletion has failed after its first step, the metadata is gone and not durably so. A crash behind the sweep must not bring it back without its files.
func TestSweep_MakesItDurableThatMetadataIsGone_BeforeItDeletesTheFiles(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		return storagetest.Fault{Unsynced: path.Base(op.Path) == checkpoint.MetadataFile, After: errors.New("not synced")}
	})
	if err := m.Remove(t.Context(), "2f6c/chk-7/"+checkpoint.MetadataFile); err == nil {
		t.Fatal("the deletion did not fail")
	}
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		if path.Base(op.Path) == checkpoint.MetadataFile && op.Kind == storagetest.Remove {
			return storagetest.Fault{Before: errors.New("still not")}
		}
		return storagetest.Fault{}
	})
	if removed, err := Sweep(t.Context(), m, Sweeping{Now: start}); err == nil || slices.ContainsFunc(removed, func(name string) bool { return path.Dir(name) == "2f6c/chk-7" }) {
		t.Errorf("removed %v, %v, though the metadata may come back", removed, err)
	}
	m.SetFaults(nil)
	removed, err := Sweep(t.Context(), m, Sweeping{Now: start})
	if err != nil || !slices.ContainsFunc(removed, func(name string) bool { return path.Dir(name) == "2f6c/chk-7" }) {
		t.Errorf("removed %v, %v", removed, err)
	}
	m.Crash()
	if left := names(t, m); len(left) > 0 {
		t.Errorf("after the crash there is %v", left)
	}
}

// FLINK-35379: what fails, is done twice or is half done must neither delete what is referred to nor leak for ever.
func TestFault_B77_SweepsWithFaultsAndCrashes_KeepWhatIsReferredToAndEndClean(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := storagetest.NewMem()
		m.SetTime(start)
		fill(t, m)
		faults := make(chan uint32, 10_000)
		for range cap(faults) {
			faults <- r.Uint32()
		}
		for range 3 {
			m.SetFaults(func(storagetest.Op) storagetest.Fault {
				switch <-faults % 6 {
				case 0:
					return storagetest.Fault{Before: errors.New("not done")}
				case 1:
					return storagetest.Fault{After: errors.New("done, but not said")}
				case 2:
					return storagetest.Fault{Unsynced: true}
				}
				return storagetest.Fault{}
			})
			_, _ = Sweep(t.Context(), m, Sweeping{Now: start}) // an error is to be expected
			m.SetFaults(nil)
			if r.IntN(2) == 0 {
				m.Crash()
			}
			for _, name := range whole {
				if !slices.Contains(names(t, m), name) {
					t.Fatalf("seed %d: %s is gone", seed, name)
				}
			}
		}
		if _, err := Sweep(t.Context(), m, Sweeping{Now: start}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, names(t, m)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestSweep_MetadataThatCannotBeRead_IsNoLicence(t *testing.T) {
	m := storagetest.NewMem()
	m.SetTime(start)
	fill(t, m)
	put(t, m, "2f6c/chk-7/_metadata", []byte("damaged"))
	if got, err := Sweep(t.Context(), m, Sweeping{Now: start}); err != nil || !slices.Equal(got, orphans[1:]) {
		t.Errorf("damaged: deleted %v, %v", got, err)
	}
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		if op.Kind == storagetest.ReadFile {
			return storagetest.Fault{Before: errors.New("the disk is busy")}
		}
		return storagetest.Fault{}
	})
	put(t, m, "gone/chk-2/sums-0-a1-c2.state", nil)
	if got, err := Sweep(t.Context(), m, Sweeping{Now: start}); err == nil || len(got) > 0 {
		t.Errorf("not readable now: deleted %v, %v", got, err)
	}
}

func TestSweep_OnAFileSystem_RemovesUnfinishedFilesAndEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	s, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s)
	for _, name := range []string{"live/chk-3/unfinished", "gone/chk-3/unfinished"} {
		if _, err := s.Create(t.Context(), name); err != nil { // as if the process were killed now
			t.Fatal(err)
		}
	}
	for _, name := range []string{"live/chk-4", "gone/chk-4"} {
		if err := s.MkdirAll(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	sweeping := Sweeping{Now: time.Now().Add(time.Second), Live: func() map[job.ID]retention.Activity { return map[job.ID]retention.Activity{"live": {Lowest: 3}} }}
	for range 2 { // the second sweep finds the directories that the first has emptied
		if _, err := Sweep(t.Context(), s, sweeping); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	err = filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if name := strings.TrimPrefix(file, dir+"/"); err == nil && file != dir && path.Base(path.Dir(name)) != "chk-7" && strings.Contains(name, "/") {
			left = append(left, strings.Split(name, ".tmp~")[0])
		}
		return err
	})
	if diff := cmp.Diff([]string{"2f6c/chk-7", "live/chk-3", "live/chk-3/", "live/chk-4"}, left); err != nil || diff != "" {
		t.Errorf("%s, %v", diff, err)
	}
	if diff := cmp.Diff(whole, names(t, s)); diff != "" {
		t.Error(diff)
	}
}
