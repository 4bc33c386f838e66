package cli

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/inspect"
)

// The views of what is stored, for the commands that need no cluster.

type storedView struct {
	Path        string             `json:"path"`
	Job         string             `json:"job_id"`
	JobName     string             `json:"name"`
	ID          int64              `json:"checkpoint_id"`
	Kind        string             `json:"kind"`
	Triggered   string             `json:"triggered"`
	Fingerprint string             `json:"fingerprint"`
	LeaderEpoch uint64             `json:"leader_epoch"`
	Params      map[string]string  `json:"parameters"`
	StateBytes  int64              `json:"state_bytes"`
	Files       int                `json:"state_files"`
	Vertices    []storedVertexView `json:"vertices"`
	Hooks       []storedHookView   `json:"master_hooks,omitempty"`
}

type storedHookView struct {
	ID         string `json:"hook_id"`
	StateBytes int64  `json:"state_bytes"`
}

type storedVertexView struct {
	ID             string               `json:"vertex_id"`
	Parallelism    int                  `json:"parallelism"`
	MaxParallelism int                  `json:"max_parallelism"`
	Ended          int                  `json:"subtasks_ended"`
	StateBytes     int64                `json:"state_bytes"`
	Operators      []storedOperatorView `json:"operators"`
}

type storedOperatorView struct {
	ID         string              `json:"operator_id"`
	Kind       string              `json:"kind"`
	Signature  string              `json:"signature"`
	Stateful   bool                `json:"stateful"`
	Items      int                 `json:"items"`
	StateBytes int64               `json:"state_bytes"`
	States     []storedStateView   `json:"states"`
	Subtasks   []storedSubtaskView `json:"subtasks"`
}

type storedStateView struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	KeyType   string `json:"key_type"`
	ValueType string `json:"value_type"`
}

type storedSubtaskView struct {
	Subtask       int      `json:"subtask"`
	Items         int      `json:"items"`
	FirstKeyGroup int      `json:"first_key_group"`
	KeyGroups     int      `json:"key_groups"`
	StateBytes    int64    `json:"state_bytes"`
	Files         []string `json:"files"`
}

type verifiedView struct {
	Path   string       `json:"path"`
	Job    string       `json:"job_id"`
	ID     int64        `json:"checkpoint_id"`
	Whole  bool         `json:"whole"`
	Pieces int          `json:"pieces"`
	Bytes  int64        `json:"state_bytes"`
	Damage []damageView `json:"damage"`
}

type damageView struct {
	Vertex   string `json:"vertex_id"`
	Operator string `json:"operator_id,omitempty"`
	Subtask  int    `json:"subtask"`
	Problem  string `json:"problem"`
}

func viewStored(location string, r inspect.Report) storedView {
	params := map[string]string{}
	for k, v := range r.Params {
		params[k] = v
	}
	return storedView{
		Path: location, Job: string(r.Job), JobName: r.JobName, ID: int64(r.ID), Kind: r.Kind.String(), Triggered: viewTime(r.Triggered),
		Fingerprint: r.Fingerprint, LeaderEpoch: uint64(r.Epoch), Params: params, StateBytes: r.Bytes, Files: r.Files,
		Vertices: viewEach(r.Vertices, viewStoredVertex),
		Hooks:    viewEach(r.Hooks, func(h inspect.HookReport) storedHookView { return storedHookView{h.Hook, h.Bytes} }),
	}
}

func viewStoredVertex(v inspect.VertexReport) storedVertexView {
	return storedVertexView{string(v.Vertex), v.Parallelism, v.MaxParallelism, v.Ended, v.Bytes, viewEach(v.Operators, viewStoredOperator)}
}

func viewStoredOperator(op inspect.OperatorReport) storedOperatorView {
	out := storedOperatorView{
		ID: op.Operator.ID, Kind: op.Operator.Kind, Signature: op.Operator.Signature, Stateful: op.Operator.Stateful,
		Items: op.Items, StateBytes: op.Bytes, States: []storedStateView{}, Subtasks: viewEach(op.Subtasks, viewStoredSubtask),
	}
	for _, s := range op.States {
		out.States = append(out.States, storedStateView(s))
	}
	return out
}

func viewStoredSubtask(s inspect.SubtaskReport) storedSubtaskView {
	return storedSubtaskView{s.Subtask, s.Items, s.KeyGroups.Start, s.KeyGroups.Len(), s.Bytes, append([]string{}, s.Files...)}
}

func viewVerified(s *inspect.Stored, v inspect.Verified) verifiedView {
	md := s.Metadata
	return verifiedView{s.Location, string(md.Job), int64(md.ID), len(v.Damage) == 0, v.Pieces, v.Bytes, viewEach(v.Damage, func(d inspect.Damage) damageView {
		return damageView(d)
	})}
}

// restoreCheckView is what weir job check has found.
type restoreCheckView struct {
	Path       string               `json:"path"`
	Job        string               `json:"name"`
	ID         int64                `json:"checkpoint_id"`
	Restorable bool                 `json:"restorable"`
	Operators  []operatorChangeView `json:"operators"`
}

type operatorChangeView struct {
	Operator string `json:"operator_id,omitempty"`
	Hook     string `json:"hook_id,omitempty"`
	Outcome  string `json:"outcome"`
	Detail   string `json:"detail,omitempty"`
}

func viewRestoreCheck(s *inspect.Stored, name string, list []checkpoint.Comparison, restorable bool) restoreCheckView {
	return restoreCheckView{s.Location, name, int64(s.Metadata.ID), restorable, viewEach(list, func(c checkpoint.Comparison) operatorChangeView {
		return operatorChangeView{c.Operator, c.Hook, string(c.Outcome), c.Detail}
	})}
}

// listedView is a checkpoint or savepoint that was found in a directory.
type listedView struct {
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

func viewListed(l inspect.Listed) listedView {
	v := listedView{Path: l.Location, Bytes: l.Bytes, Whole: l.Problem == nil}
	if md := l.Metadata; md != nil {
		v.Job, v.JobName, v.ID, v.Kind, v.Triggered = string(md.Job), md.JobName, int64(md.ID), md.Kind.String(), viewTime(md.Timestamp)
	}
	if l.Problem != nil {
		v.Problem = errorLine(l.Problem)
	}
	return v
}
