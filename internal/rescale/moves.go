package rescale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Move is state that one task reads and another, or it itself, has written.
type Move struct {
	From  job.TaskID // of the checkpoint
	To    job.TaskID // of the graph
	Bytes int64
}

// Moves says what each task of g would read of the checkpoint, and who had written it, by To and then From. State that several tasks need, as state in
// files of its backend whose key groups are divided among them, is in the moves to each. The error is that of checkpoint.Assign.
func Moves(md *checkpoint.Metadata, g *job.Graph) ([]Move, error) {
	if _, err := checkpoint.Assign(md, g); err != nil {
		return nil, err
	}
	assigned, err := checkpoint.Assign(labelled(md), g)
	if err != nil {
		return nil, err
	}
	vertexOf := map[string]job.VertexID{}
	for _, v := range md.Vertices {
		for _, op := range v.Operators {
			vertexOf[op.ID] = v.Vertex
		}
	}
	bytes := map[[2]job.TaskID]int64{}
	for to, r := range assigned {
		for _, op := range r.Operators {
			for label, n := range sizes(op) {
				subtask, _, _ := strings.Cut(label, "-")
				if i, err := strconv.Atoi(subtask); err == nil && n > 0 {
					bytes[[2]job.TaskID{to, {Vertex: vertexOf[op.Operator], Subtask: i}}] += n
				}
			}
		}
	}
	out := make([]Move, 0, len(bytes))
	for pair, n := range bytes {
		out = append(out, Move{From: pair[1], To: pair[0], Bytes: n})
	}
	slices.SortFunc(out, func(a, b Move) int { return cmp.Or(a.To.Compare(b.To), a.From.Compare(b.From)) })
	return out, nil
}

// sizes are the bytes of the parts of a restore, by their labels.
func sizes(op checkpoint.OperatorRestore) map[string]int64 {
	out := map[string]int64{}
	for _, k := range op.Keyed {
		if k.IsNative() {
			for _, f := range k.Files {
				out[f.Path] += f.Size
			}
			continue
		}
		out[k.Handle.Path] += k.Size()
	}
	items := func(it checkpoint.Items) {
		if n := len(it.Offsets); n > 0 {
			out[it.Handle.Path] += it.Offsets[n-1] - it.Offsets[0]
		}
	}
	for _, it := range op.Items {
		items(it)
	}
	for _, l := range op.Lists {
		items(l.Items)
	}
	return out
}

// labelled copies the metadata with the number of the subtask in the place of each path: so the parts that are assigned say where they come from.
func labelled(md *checkpoint.Metadata) *checkpoint.Metadata {
	out := *md
	out.Vertices = slices.Clone(md.Vertices)
	for i := range out.Vertices {
		v := &out.Vertices[i]
		v.Subtasks = slices.Clone(v.Subtasks)
		for n := range v.Subtasks {
			s := &v.Subtasks[n]
			s.Operators = slices.Clone(s.Operators)
			for k := range s.Operators {
				label(&s.Operators[k], n)
			}
		}
	}
	return &out
}

func label(op *checkpoint.OperatorState, subtask int) {
	handle := func(h checkpoint.Handle) checkpoint.Handle {
		return checkpoint.Handle{Path: strconv.Itoa(subtask), Length: h.Size(), CRC32C: h.CRC32C}
	}
	if op.Items != nil {
		op.Items = &checkpoint.Items{Handle: handle(op.Items.Handle), Offsets: op.Items.Offsets}
	}
	op.Lists = slices.Clone(op.Lists)
	for i := range op.Lists {
		op.Lists[i].Items.Handle = handle(op.Lists[i].Items.Handle)
	}
	if op.Keyed == nil {
		return
	}
	k := *op.Keyed
	if k.IsNative() {
		k.Files = slices.Clone(k.Files)
		for i := range k.Files {
			k.Files[i].Path = fmt.Sprintf("%d-%d", subtask, i)
		}
	} else {
		k.Handle = handle(k.Handle)
	}
	op.Keyed = &k
}

// Divide says how many bytes of state another executor has read than wrote it, and how many the same; before and after are where the tasks ran.
func Divide(moves []Move, before, after map[job.TaskID]job.ExecutorID) (moved, stayed int64) {
	for _, m := range moves {
		if m.away(before, after) {
			moved += m.Bytes
		} else {
			stayed += m.Bytes
		}
	}
	return moved, stayed
}

func (m Move) away(before, after map[job.TaskID]job.ExecutorID) bool {
	return before[m.From] == "" || before[m.From] != after[m.To]
}

// Most is the state of the task that reads most.
func Most(moves []Move) (most int64) {
	_, read, _ := reads(moves, func(Move) bool { return false })
	for _, n := range read {
		most = max(most, n)
	}
	return most
}

// reads sums up the moves of each task that reads anything: all bytes, and those that away says come from elsewhere.
func reads(moves []Move, away func(Move) bool) (tasks []job.TaskID, read, moved map[job.TaskID]int64) {
	read, moved = map[job.TaskID]int64{}, map[job.TaskID]int64{}
	for _, m := range moves {
		read[m.To] += m.Bytes
		if away(m) {
			moved[m.To] += m.Bytes
		}
	}
	return slices.SortedFunc(maps.Keys(read), job.TaskID.Compare), read, moved
}
