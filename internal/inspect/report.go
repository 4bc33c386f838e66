package inspect

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Report is what is in a checkpoint.
type Report struct {
	Job         job.ID
	JobName     string
	Params      map[string]string
	ID          checkpoint.ID
	Kind        checkpoint.Kind
	Triggered   time.Time
	Fingerprint string
	Epoch       job.LeaderEpoch
	Bytes       int64 // of state, inline and in files
	Files       int   // that hold state
	Vertices    []VertexReport
	Hooks       []HookReport // master hooks with state, ascending by id
}

// HookReport is what a master hook has kept.
type HookReport struct {
	Hook  string
	Bytes int64
}

// VertexReport is what is in a vertex, in graph order.
type VertexReport struct {
	Vertex         job.VertexID
	Parallelism    int
	MaxParallelism int
	Ended          int // subtasks that had reached the end of their input
	Bytes          int64
	Operators      []OperatorReport
}

// OperatorReport is the state of one operator, in the order of the chain.
type OperatorReport struct {
	Operator job.Operator
	Items    int                      // of list state
	States   []checkpoint.StateSchema // of keyed state
	Bytes    int64
	Subtasks []SubtaskReport // those that have state of the operator, ascending
}

// SubtaskReport is the state of one operator in one subtask.
type SubtaskReport struct {
	Subtask   int
	Items     int
	KeyGroups job.KeyGroupRange // empty: no keyed state
	Bytes     int64
	Files     []string // without those of inline state
}

// NewReport says what is in md.
func NewReport(md *checkpoint.Metadata) Report {
	r := Report{
		Job: md.Job, JobName: md.JobName, Params: md.Params, ID: md.ID, Kind: md.Kind, Triggered: md.Timestamp, Fingerprint: md.Fingerprint,
		Epoch: md.Epoch,
	}
	files := map[string]bool{}
	for i := range md.Vertices {
		v := reportVertex(&md.Vertices[i])
		for _, op := range v.Operators {
			for _, s := range op.Subtasks {
				for _, name := range s.Files {
					files[name] = true
				}
			}
		}
		r.Bytes += v.Bytes
		r.Vertices = append(r.Vertices, v)
	}
	for _, s := range md.MasterStates {
		r.Hooks = append(r.Hooks, HookReport{s.Hook, int64(len(s.State))})
		r.Bytes += int64(len(s.State))
	}
	r.Files = len(files)
	return r
}

func reportVertex(v *checkpoint.VertexState) VertexReport {
	r := VertexReport{Vertex: v.Vertex, Parallelism: v.Parallelism, MaxParallelism: v.MaxParallelism}
	at := map[string]int{}
	for i, op := range v.Operators {
		at[op.ID] = i
		r.Operators = append(r.Operators, OperatorReport{Operator: op})
	}
	for i := range v.Subtasks {
		if v.Subtasks[i].Ended {
			r.Ended++
		}
		for k := range v.Subtasks[i].Operators {
			state := &v.Subtasks[i].Operators[k]
			r.Operators[at[state.Operator]].add(v.Subtasks[i].Subtask, state)
		}
	}
	for _, op := range r.Operators {
		r.Bytes += op.Bytes
	}
	return r
}

// add adds the state of one subtask.
func (r *OperatorReport) add(subtask int, state *checkpoint.OperatorState) {
	s := SubtaskReport{Subtask: subtask}
	if k := state.Keyed; k != nil {
		s.KeyGroups = k.Range
		s.addHandle(k.Handle)
		for _, f := range k.Files {
			s.Bytes += f.Size
			s.Files = append(s.Files, f.Path)
		}
		if r.States == nil {
			r.States = k.States
		}
	}
	if it := state.Items; it != nil {
		s.Items = it.Len()
		s.addHandle(it.Handle)
	}
	for i := range state.Lists {
		l := &state.Lists[i]
		s.Items += l.Items.Len()
		s.addHandle(l.Items.Handle)
		if !slices.Contains(r.States, l.Schema) {
			r.States = append(slices.Clone(r.States), l.Schema)
		}
	}
	r.Items += s.Items
	r.Bytes += s.Bytes
	r.Subtasks = append(r.Subtasks, s)
}

func (s *SubtaskReport) addHandle(h checkpoint.Handle) {
	s.Bytes += h.Size()
	if !h.IsInline() && !slices.Contains(s.Files, h.Path) {
		s.Files = append(s.Files, h.Path)
	}
}
