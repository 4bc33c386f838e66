package inspecttest

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stateFile = "sums-0-a1-c7.state"

// put stores a whole checkpoint of job j in dir: metadata and one state file.
func put(t *testing.T, files storage.Storage, j job.ID, id checkpoint.ID, dir string) {
	t.Helper()
	state := []byte("state")
	md := &checkpoint.Metadata{
		Job: j, JobName: "sums", ID: id, Kind: checkpoint.Checkpoint, Timestamp: time.UnixMilli(1).UTC(), Fingerprint: "f", Epoch: 1,
		Vertices: []checkpoint.VertexState{{
			Vertex: "sums", Parallelism: 1, MaxParallelism: 4, Operators: []job.Operator{{ID: "sums", Stateful: true}},
			Subtasks: []checkpoint.SubtaskState{{Operators: []checkpoint.OperatorState{{
				Operator: "sums", Items: &checkpoint.Items{Handle: checkpoint.FileHandle(stateFile, 0, state), Offsets: []int64{0, 5}},
			}}}},
		}},
	}
	data, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	write(t, files, dir+"/"+checkpoint.MetadataFile, string(data))
	write(t, files, dir+"/"+stateFile, string(state))
}

func write(t *testing.T, files storage.Storage, name, data string) {
	t.Helper()
	if err := files.WriteFile(t.Context(), name, []byte(data), storage.Replace); err != nil {
		t.Fatal(err)
	}
}

// Each kind of fault is found, and nothing is where all is well.
func TestAudit_FindsEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, files storage.Storage)
		facts  Facts
		want   string // empty: all is well
	}{
		"whole": {},
		"state file missing": {change: func(t *testing.T, files storage.Storage) {
			if err := files.Remove(t.Context(), "j/chk-7/"+stateFile); err != nil {
				t.Fatal(err)
			}
		}, want: "is missing"},
		"state file damaged": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-7/"+stateFile, "stale")
		}, want: "are damaged"},
		"metadata damaged": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-7/_metadata", "no metadata")
		}, want: "j/chk-7: _metadata"},
		"file of nobody": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-6/sums-0-a1-c6.state", "x")
		}, want: "j/chk-6/sums-0-a1-c6.state (1 bytes) belongs to no checkpoint"},
		"file of nobody beside a whole one": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-7/sums-0-a2-c7.state", "x")
		}, want: "belongs to no checkpoint"},
		"file of nobody, found by a sweep": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-6/sums-0-a1-c6.state", "x")
		}, facts: Facts{Sweep: true}},
		"file that no sweep would delete": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "notes", "x")
		}, facts: Facts{Sweep: true}, want: "notes (1 bytes) belongs to no checkpoint"},
		"file of a job that runs": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-8/sums-0-a1-c8.state", "x")
		}, facts: Facts{Live: map[job.ID]checkpoint.ID{"j": 7}}},
		"old file of a job that runs": {change: func(t *testing.T, files storage.Storage) {
			write(t, files, "j/chk-6/sums-0-a1-c6.state", "x")
		}, facts: Facts{Live: map[job.ID]checkpoint.ID{"j": 7}}, want: "belongs to no checkpoint"},
		"kept by a job that is FINISHED":  {facts: Facts{Ended: map[job.ID]job.State{"j": job.Finished}}, want: "is FINISHED"},
		"kept by a job that was canceled": {facts: Facts{Ended: map[job.ID]job.State{"j": job.Canceled}}},
		"was discarded": {facts: Facts{
			Ended: map[job.ID]job.State{"j": job.Canceled}, Discarded: map[job.ID][]checkpoint.ID{"j": {6, 7}},
		}, want: "it was discarded"},
	} {
		local, err := storage.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, files := range []storage.Storage{storagetest.NewMem(), local} {
			put(t, files, "j", 7, "j/chk-7")
			if c.change != nil {
				c.change(t, files)
			}
			err := Audit(t.Context(), files, c.facts)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s in %T: %v, want %q", name, files, err, c.want)
			}
		}
	}
}

// An empty directory of a checkpoint is left behind; one of a job that runs is not.
func TestAudit_EmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	files, err := storage.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"j/chk-3", "savepoint-j-1"} {
		if err := files.MkdirAll(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	err = AuditDir(t.Context(), dir, Facts{})
	if err == nil || !strings.Contains(err.Error(), "j/chk-3 is left behind") || !strings.Contains(err.Error(), "savepoint-j-1 is left behind") {
		t.Errorf("audit: %v", err)
	}
	if err := AuditDir(t.Context(), dir, Facts{Live: map[job.ID]checkpoint.ID{"j": 0}}); err != nil {
		t.Errorf("of a job that runs: %v", err)
	}
	if err := AuditDir(t.Context(), dir+"/nowhere", Facts{}); err != nil {
		t.Errorf("without a directory: %v", err)
	}
}
