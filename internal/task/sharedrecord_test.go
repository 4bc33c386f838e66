package task

import (
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
)

func fileNamed(name, file string) checkpoint.SharedFile {
	return checkpoint.SharedFile{Name: name, Path: checkpoint.SharedPath(file), Size: 3}
}

func TestSharedRecord_FindsWhatIsOfTheBaseAndOfNothingElse(t *testing.T) {
	var r SharedRecord
	r.Refers(5, "a", []checkpoint.SharedFile{fileNamed("x", "x5"), {Name: "own", Path: "own", Size: 3}})
	r.Refers(6, "a", []checkpoint.SharedFile{fileNamed("x", "x6"), fileNamed("y", "y6")})
	r.Refers(6, "b", nil)
	for _, c := range []struct {
		base           checkpoint.ID
		operator, name string
		size           int64
		want           string
	}{
		{5, "a", "x", 3, "shared/x5"},
		{6, "a", "x", 3, "shared/x6"},
		{5, "a", "y", 3, ""},   // of a later one
		{5, "a", "own", 3, ""}, // is not shared
		{6, "b", "x", 3, ""},   // of another operator
		{6, "a", "x", 4, ""},   // is another file
		{7, "a", "x", 3, ""},
		{0, "a", "x", 3, ""},
	} {
		if f, ok := r.Find(c.base, c.operator, c.name, c.size); ok != (c.want != "") || ok && f.Path != c.want {
			t.Errorf("%+v: %+v, %t", c, f, ok)
		}
	}
	r.Over(6)
	if _, ok := r.Find(6, "a", "x", 3); ok {
		t.Error("an aborted checkpoint is a base")
	}
	r.Refers(7, "a", nil)
	if r.Based(7); r.Len() != 1 {
		t.Errorf("%d checkpoints are known, of which 7 is the base", r.Len())
	}
}

func TestSharedRecord_IsBounded(t *testing.T) {
	var r SharedRecord
	for id := checkpoint.ID(1); id < 100; id++ {
		r.Refers(id, "a", []checkpoint.SharedFile{fileNamed("x", "x")})
	}
	if _, ok := r.Find(99, "a", "x", 3); r.Len() != maxRecords || !ok {
		t.Errorf("%d are known, the newest %t", r.Len(), ok)
	}
}

func TestSharedRecord_Restored_OnlyOfOneWholePart(t *testing.T) {
	part := checkpoint.Keyed{Backend: "b", Files: []checkpoint.SharedFile{fileNamed("x", "x")}}
	clipped := part
	clipped.Clipped = true
	for name, c := range map[string]struct {
		parts []checkpoint.Keyed
		want  bool
	}{"one": {[]checkpoint.Keyed{part}, true}, "two": {[]checkpoint.Keyed{part, part}, false}, "a part": {[]checkpoint.Keyed{clipped}, false}} {
		var r SharedRecord
		r.Restored(5, []checkpoint.OperatorRestore{{Operator: "a", Keyed: c.parts}})
		if _, ok := r.Find(5, "a", "x", 3); ok != c.want {
			t.Errorf("%s: known %t", name, ok)
		}
	}
}
