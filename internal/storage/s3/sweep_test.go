package s3_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// A sweep finds in a bucket what it finds in a directory: orphans, uploads that nobody goes on with, and what a try of the store has left. What is young
// stays.
func TestSweep_OfABucket_FindsFilesAndUploads(t *testing.T) {
	s := open(t, server.Endpoint())
	attempt := job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "v"}, Attempt: 1}
	state := checkpoint.Dir("j", 5) + "/" + checkpoint.StateFile(attempt, 5)
	for _, name := range []string{state, "notes.txt"} {
		if err := s.WriteFile(t.Context(), name, []byte("x"), storage.Replace); err != nil {
			t.Fatal(err)
		}
	}
	leaveUpload(t, s, state)
	sweep := func(age time.Duration) []string {
		removed, err := inspect.Sweep(t.Context(), s, inspect.Sweeping{SafeAge: age, Now: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if removed := sweep(2 * time.Hour); len(removed) > 0 {
		t.Errorf("young, and yet removed: %q", removed)
	}
	removed := sweep(time.Minute)
	if len(removed) != 2 || !slices.Contains(removed, state) || !slices.ContainsFunc(removed, func(n string) bool { return strings.Contains(n, "/.tmp~") }) {
		t.Errorf("removed %q", removed)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 1 || list[0].Path != "notes.txt" {
		t.Errorf("left: %v, %v", list, err)
	}
	if list, err := s.Leftovers(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// Who may only read can look at everything.
func TestReading_NeedsNoRightToWrite(t *testing.T) {
	behind, direct, _ := line(t, func(r *http.Request) s3test.Fault {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return s3test.Fault{}
		}
		return s3test.Fault{Status: 403, Code: "AccessDenied"}
	})
	writeBig(t, direct, "d/f", big())
	wantBytes(t, behind, "d/f", big())
	if there, err := behind.Exists(t.Context()); !there || err != nil {
		t.Errorf("%t, %v", there, err)
	}
	if _, err := behind.Stat(t.Context(), "d/f"); err != nil {
		t.Error(err)
	}
	if list, err := behind.List(t.Context(), "d"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	f, err := behind.Open(t.Context(), "d/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 10), 1<<20); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := direct.RemoveAll(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	if there, err := behind.Exists(t.Context()); there || err != nil {
		t.Errorf("%t, %v", there, err)
	}
}
