package checkpoint

import (
	"strings"
	"testing"

	"github.com/weirstream/weir/internal/job"
)

func TestDir_AndItsInverse(t *testing.T) {
	for _, c := range []struct {
		job job.ID
		id  ID
		dir string
	}{
		{"2f6c", 1, "2f6c/chk-1"},
		{"2f6c", 1 << 40, "2f6c/chk-1099511627776"},
		{"a/b", 3, "a%2Fb/chk-3"},
		{"..", 3, "%2E./chk-3"},
		{"50% ü", 3, "50%25%20%C3%BC/chk-3"},
	} {
		if got := Dir(c.job, c.id); got != c.dir {
			t.Errorf("Dir(%q, %d) = %q, want %q", c.job, c.id, got, c.dir)
		}
		if j, id, ok := ParseDir(c.dir); !ok || j != c.job || id != c.id {
			t.Errorf("ParseDir(%q) = %q, %d, %v", c.dir, j, id, ok)
		}
		if err := ValidatePath(c.dir); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "chk-1", "j/chk-", "j/chk-0", "j/chk-01", "j/chk--1", "j/chk-+1", "j/chk-1/x", "j/shared", "a%2/chk-1", "a%zz/chk-1", "a%41/chk-1", "../chk-1"} {
		if j, id, ok := ParseDir(bad); ok {
			t.Errorf("ParseDir(%q) = %q, %d", bad, j, id)
		}
	}
}

func TestSavepointDir(t *testing.T) {
	for _, c := range []struct {
		job  job.ID
		want string
	}{
		{"0123456789abcdef", "savepoint-01234567-9f"},
		{"ab", "savepoint-ab-9f"},
		{"a/b", "savepoint-a%2Fb-9f"},
	} {
		got := SavepointDir(c.job, "9f")
		if got != c.want || !IsSavepointDir(got) {
			t.Errorf("SavepointDir(%q) = %q, want %q", c.job, got, c.want)
		}
	}
	if IsSavepointDir("chk-1") || IsSavepointDir("savepoint-x") {
		t.Error("another name passes as a savepoint's")
	}
}

func TestStateFile_IsDifferentForEveryAttempt(t *testing.T) {
	long := strings.Repeat("ü/", 200)
	names := map[string]job.AttemptID{}
	for _, vertex := range []job.VertexID{"per-origin", "per-origin-1", "per", "a b", "a/b", "a%2Fb", "a-1-a1-c1", ".hidden", "..", job.VertexID(long), job.VertexID(long + "x")} {
		for subtask := range 12 {
			for attempt := 1; attempt <= 12; attempt++ {
				a := job.AttemptID{Job: "j", Task: job.TaskID{Vertex: vertex, Subtask: subtask}, Attempt: attempt}
				name := StateFile(a, 7)
				if other, ok := names[name]; ok {
					t.Fatalf("%v and %v share the name %s", a, other, name)
				}
				names[name] = a
				if len(name) > 255 || strings.Contains(name, "/") || ValidatePath(name) != nil {
					t.Fatalf("%q cannot be a file name", name)
				}
				got, ok := ParseStateFile(name)
				if !ok || got.Subtask != subtask || got.Attempt != attempt || got.ID != 7 || got.Vertex != label(string(vertex)) {
					t.Fatalf("ParseStateFile(%q) = %+v, %v", name, got, ok)
				}
			}
		}
	}
	for _, bad := range []string{"", "_metadata", "x.state", "x-1-a1.state", "x-1-a1-c1", "x-01-a1-c1.state", "x-1-1-1.state", "x-1-ax-c1.state"} {
		if got, ok := ParseStateFile(bad); ok {
			t.Errorf("ParseStateFile(%q) = %+v", bad, got)
		}
	}
}
