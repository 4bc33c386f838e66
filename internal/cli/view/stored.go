package view

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/inspect"
)

// Stored is what is in a stored checkpoint or savepoint.
type Stored struct {
	Path        string            `json:"path"`
	Job         string            `json:"job_id"`
	JobName     string            `json:"name"`
	ID          int64             `json:"checkpoint_id"`
	Kind        string            `json:"kind"`
	Triggered   string            `json:"triggered"`
	Fingerprint string            `json:"fingerprint"`
	LeaderEpoch uint64            `json:"leader_epoch"`
	Params      map[string]string `json:"parameters"`
	StateBytes  int64             `json:"state_bytes"`
	Files       int               `json:"state_files"`
	Vertices    []StoredVertex    `json:"vertices"`
	Hooks       []StoredHook      `json:"master_hooks,omitempty"`
}

// StoredHook is the state of a master hook.
type StoredHook struct {
	ID         string `json:"hook_id"`
	StateBytes int64  `json:"state_bytes"`
}

// StoredVertex is a vertex in it.
type StoredVertex struct {
	ID             string           `json:"vertex_id"`
	Parallelism    int              `json:"parallelism"`
	MaxParallelism int              `json:"max_parallelism"`
	Ended          int              `json:"subtasks_ended"`
	StateBytes     int64            `json:"state_bytes"`
	Operators      []StoredOperator `json:"operators"`
}

// StoredOperator is an operator in it.
type StoredOperator struct {
	ID         string          `json:"operator_id"`
	Kind       string          `json:"kind"`
	Signature  string          `json:"signature"`
	Stateful   bool            `json:"stateful"`
	Items      int             `json:"items"`
	StateBytes int64           `json:"state_bytes"`
	States     []StoredState   `json:"states"`
	Subtasks   []StoredSubtask `json:"subtasks"`
}

// StoredState is a declared state.
type StoredState struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	KeyType   string `json:"key_type"`
	ValueType string `json:"value_type"`

	NamespaceType string `json:"namespace_type,omitempty"`
	MapKeyType    string `json:"map_key_type,omitempty"`
	TTL           int64  `json:"ttl_ms,omitempty"`
}

// StoredSubtask is the part of one subtask.
type StoredSubtask struct {
	Subtask       int      `json:"subtask"`
	Items         int      `json:"items"`
	FirstKeyGroup int      `json:"first_key_group"`
	KeyGroups     int      `json:"key_groups"`
	StateBytes    int64    `json:"state_bytes"`
	Files         []string `json:"files"`
}

// Verified is what a verification has found.
type Verified struct {
	Path   string   `json:"path"`
	Job    string   `json:"job_id"`
	ID     int64    `json:"checkpoint_id"`
	Whole  bool     `json:"whole"`
	Pieces int      `json:"pieces"`
	Bytes  int64    `json:"state_bytes"`
	Damage []Damage `json:"damage"`
}

// Damage is a piece that is missing or damaged.
type Damage struct {
	Vertex   string `json:"vertex_id"`
	Operator string `json:"operator_id,omitempty"`
	Subtask  int    `json:"subtask"`
	Problem  string `json:"problem"`
}

// OfStored is the view of a stored checkpoint at a location.
func OfStored(location string, r inspect.Report) Stored {
	params := map[string]string{}
	for k, v := range r.Params {
		params[k] = v
	}
	return Stored{
		Path: location, Job: string(r.Job), JobName: r.JobName, ID: int64(r.ID), Kind: r.Kind.String(), Triggered: Time(r.Triggered),
		Fingerprint: r.Fingerprint, LeaderEpoch: uint64(r.Epoch), Params: params, StateBytes: r.Bytes, Files: r.Files,
		Vertices: Each(r.Vertices, ofStoredVertex),
		Hooks:    Each(r.Hooks, func(h inspect.HookReport) StoredHook { return StoredHook{h.Hook, h.Bytes} }),
	}
}

func ofStoredVertex(v inspect.VertexReport) StoredVertex {
	return StoredVertex{string(v.Vertex), v.Parallelism, v.MaxParallelism, v.Ended, v.Bytes, Each(v.Operators, ofStoredOperator)}
}

func ofStoredOperator(op inspect.OperatorReport) StoredOperator {
	out := StoredOperator{
		ID: op.Operator.ID, Kind: op.Operator.Kind, Signature: op.Operator.Signature, Stateful: op.Operator.Stateful,
		Items: op.Items, StateBytes: op.Bytes, States: []StoredState{}, Subtasks: Each(op.Subtasks, ofStoredSubtask),
	}
	for _, s := range op.States {
		out.States = append(out.States, StoredState(s))
	}
	return out
}

func ofStoredSubtask(s inspect.SubtaskReport) StoredSubtask {
	return StoredSubtask{s.Subtask, s.Items, s.KeyGroups.Start, s.KeyGroups.Len(), s.Bytes, append([]string{}, s.Files...)}
}

// OfVerified is the view of what a verification has found.
func OfVerified(s *inspect.Stored, v inspect.Verified) Verified {
	md := s.Metadata
	return Verified{s.Location, string(md.Job), int64(md.ID), len(v.Damage) == 0, v.Pieces, v.Bytes, Each(v.Damage, func(d inspect.Damage) Damage {
		return Damage(d)
	})}
}

// RestoreCheck is what weir job check has found.
type RestoreCheck struct {
	Path       string           `json:"path"`
	Job        string           `json:"name"`
	ID         int64            `json:"checkpoint_id"`
	Restorable bool             `json:"restorable"`
	Operators  []OperatorChange `json:"operators"`
}

// OperatorChange is what a start would do with an operator.
type OperatorChange struct {
	Operator string `json:"operator_id,omitempty"`
	Hook     string `json:"hook_id,omitempty"`
	Outcome  string `json:"outcome"`
	Detail   string `json:"detail,omitempty"`
}

// OfRestoreCheck is the view of what a start of a job from a stored checkpoint would do.
func OfRestoreCheck(s *inspect.Stored, name string, list []checkpoint.Comparison, restorable bool) RestoreCheck {
	return RestoreCheck{s.Location, name, int64(s.Metadata.ID), restorable, Each(list, func(c checkpoint.Comparison) OperatorChange {
		return OperatorChange{c.Operator, c.Hook, string(c.Outcome), c.Detail}
	})}
}

// Listed is a checkpoint or savepoint that was found in a directory.
type Listed struct {
	Path      string `json:"path"`
	Job       string `json:"job_id,omitempty"`
	JobName   string `json:"name,omitempty"`
	ID        int64  `json:"checkpoint_id,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Triggered string `json:"triggered,omitempty"`
	Bytes     int64  `json:"bytes"`
	Whole     bool   `json:"whole"`
	Problem   string `json:"problem,omitempty"`
}

// OfListed is the view of what was found in a directory; problem is what is wrong with it, in one line.
func OfListed(l inspect.Listed, problem string) Listed {
	v := Listed{Path: l.Location, Bytes: l.Bytes, Whole: l.Problem == nil, Problem: problem}
	if md := l.Metadata; md != nil {
		v.Job, v.JobName, v.ID, v.Kind, v.Triggered = string(md.Job), md.JobName, int64(md.ID), md.Kind.String(), Time(md.Timestamp)
	}
	return v
}
