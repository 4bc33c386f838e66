package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/job"
)

// nativeSample is sample with the keyed state of subtask 0 in files of a backend.
func nativeSample() *Metadata {
	md := sample()
	md.Vertices[1].Subtasks[0].Operators[0].Keyed = &Keyed{
		Range: job.KeyGroups(0, 2, 8), Backend: "pebble", States: keyedOf(md).States,
		Files: []SharedFile{
			{Name: "000012.sst", Path: "shared/per-origin-0-a1-c5-n3.shared", Size: 70, CRC32C: 5},
			{Name: "MANIFEST-000001", Path: "per-origin-0-a1-c7-n9.shared", Size: 3, CRC32C: 6},
		},
	}
	return md
}

func TestMetadata_NativeState_RoundTripsAndIsFound(t *testing.T) {
	md := nativeSample()
	got, err := DecodeMetadata(encode(t, md))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(md, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"per-origin-0-a1-c5-n3.shared"}, md.SharedFiles()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"per-origin-0-a1-c7-n9.shared", "per-origin-0-a1-c7.state"}, md.Files()); diff != "" {
		t.Error(diff)
	}
	if got := md.StateBytes(); got != 5+73+10 {
		t.Errorf("%d bytes", got)
	}
}

func TestMetadata_SharedPaths_StayInTheJobsDirectory(t *testing.T) {
	for _, p := range []string{
		"", "shared", "shared/", "shared/..", "shared/.", "shared/a/b", "shared//a", "../shared/a", "../../other/shared/a", "/shared/a", "/a", "a/b", "..", ".",
		"other/shared/a", `shared\a`, `shared/a\b`, "shared/a\x00", "./shared/a", "shared/shared", "s3://b/shared/a", "shared/" + strings.Repeat("x", MaxFileNameBytes+1),
	} {
		md := nativeSample()
		keyedOf(md).Files[0].Path = p
		if _, err := EncodeMetadata(md); !errors.Is(err, ErrMalformed) {
			t.Errorf("path %q: %v", p, err)
		}
		if _, err := DecodeMetadata(frame(1, appendMetadata(nil, md))); !errors.Is(err, ErrMalformed) {
			t.Errorf("path %q is decoded: %v", p, err)
		}
	}
	for _, name := range []string{"", "..", "a/b", "/etc/passwd", `a\b`, "a\x00"} {
		md := nativeSample()
		keyedOf(md).Files[0].Name = name
		if _, err := EncodeMetadata(md); !errors.Is(err, ErrMalformed) {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestMetadata_NativeState_IsNotInAHandleToo(t *testing.T) {
	for name, damage := range map[string]func(*Keyed){
		"inline":    func(k *Keyed) { k.Handle = InlineHandle([]byte("x")) },
		"file":      func(k *Keyed) { k.Handle.Path = "a.state" },
		"offsets":   func(k *Keyed) { k.Offsets = []int64{0} },
		"twice":     func(k *Keyed) { k.Files[1].Name = k.Files[0].Name },
		"size":      func(k *Keyed) { k.Files[1].Size = -1 },
		"too many":  func(k *Keyed) { k.Files = make([]SharedFile, MaxSharedFiles+1) },
		"range":     func(k *Keyed) { k.Range.End = 9 },
		"anonymous": func(k *Keyed) { k.Backend = "" },
	} {
		md := nativeSample()
		damage(keyedOf(md))
		if _, err := EncodeMetadata(md); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSharedFile_In_FollowsTheDirectoryOfTheCheckpoint(t *testing.T) {
	shared, own := SharedFile{Path: "shared/a"}, SharedFile{Path: "a"}
	for dir, want := range map[string][2]string{
		"j/chk-7":              {"j/shared/a", "j/chk-7/a"},
		"/moved/j/chk-7/":      {"/moved/j/shared/a", "/moved/j/chk-7/a"},
		"s3://bucket/j/chk-7":  {"s3://bucket/j/shared/a", "s3://bucket/j/chk-7/a"},
		"/chk-7":               {"/shared/a", "/chk-7/a"},
		"file:///data/j/chk-1": {"file:///data/j/shared/a", "file:///data/j/chk-1/a"},
		"chk-7":                {"shared/a", "chk-7/a"},
	} {
		if got := [2]string{shared.In(dir), own.In(dir)}; got != want {
			t.Errorf("in %s: %q, want %q", dir, got, want)
		}
	}
}

func TestSharedFileName_SaysWhatItWasUploadedFor(t *testing.T) {
	a := job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "a/b-n1", Subtask: 3}, Attempt: 2}
	name := SharedFileName(a, 7, 12)
	got, ok := ParseSharedFile(name)
	if want := (StateFileName{Vertex: "a%2Fb-n1", Subtask: 3, Attempt: 2, ID: 7}); !ok || got != want {
		t.Errorf("%s: %+v, %t", name, got, ok)
	}
	for _, bad := range []string{"", "x.shared", "a-0-a1-c1.shared", "a-0-a1-c1-n.shared", "a-0-a1-c1-n01.shared", "a-0-a1-c1-n-1.shared", "a-0-a1-c1-n1.state", "a-0-a1-n1.shared"} {
		if _, ok := ParseSharedFile(bad); ok {
			t.Errorf("%q is taken for one of ours", bad)
		}
	}
	a.Task.Vertex = job.VertexID(strings.Repeat("/", 400))
	if name := SharedFileName(a, 1<<40, 1<<40); !isFileName(name) {
		t.Errorf("%q is no file name", name)
	}
	if j, file, ok := ParseSharedPath(SharedDir("a/b") + "/" + name); !ok || j != "a/b" || file != name {
		t.Errorf("%q %q %t", j, file, ok)
	}
}

// A task of another parallelism gets all files, and is told that there is more in them than is its own.
func TestAssign_NativeState_IsClipped(t *testing.T) {
	md := nativeSample()
	k := keyedOf(md)
	whole, part := k.cut(k.Range), k.cut(job.KeyGroupRange{Start: 1, End: 3})
	if whole.Clipped || !part.Clipped || len(part.Files) != 2 || part.Range != (job.KeyGroupRange{Start: 1, End: 3}) {
		t.Errorf("whole %+v, part %+v", whole, part)
	}
	if again := part.cut(part.Range); !again.Clipped {
		t.Error("what was cut off is forgotten")
	}
}
