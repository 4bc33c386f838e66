package checkpoint

import "testing"

// The size is that of every piece of state, inline, in a file, and of master hooks.
func TestMetadata_StateBytes(t *testing.T) {
	keyed := Keyed{Handle: FileHandle("f", 10, make([]byte, 70)), Offsets: []int64{0, 70}}
	items := Items{Handle: InlineHandle(make([]byte, 5)), Offsets: []int64{0, 5}}
	m := &Metadata{
		MasterStates: []MasterState{{Hook: "h", State: make([]byte, 3)}},
		Vertices: []VertexState{
			{Subtasks: []SubtaskState{{Operators: []OperatorState{{Operator: "a", Items: &items, Keyed: &keyed}}}, {Ended: true}}},
			{Subtasks: []SubtaskState{{Operators: []OperatorState{{Operator: "b", Items: &items}}}}},
		},
	}
	if got := m.StateBytes(); got != 70+5+5+3 {
		t.Errorf("%d bytes, want 83", got)
	}
	if got := (&Metadata{}).StateBytes(); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
}
