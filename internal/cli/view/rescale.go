package view

import "github.com/weirstream/weir/internal/gateway"

// Rescaled is what a rescale was expected to take, and what it took.
type Rescaled struct {
	Job      string          `json:"job_id"`
	Estimate RescaleEstimate `json:"estimate"`
	Report   *RescaleReport  `json:"report,omitempty"`
}

// RescaleEstimate is what a rescale is expected to take.
type RescaleEstimate struct {
	Checkpoint   int64           `json:"checkpoint_id,omitempty"`
	Vertices     []RescaleVertex `json:"vertices"`
	SlotsNeeded  int             `json:"slots_needed"`
	SlotsHeld    int             `json:"slots_held"`
	SlotsFree    int             `json:"slots_free"`
	StateBytes   int64           `json:"state_bytes"`
	MovedBytes   int64           `json:"moved_bytes"`
	Tasks        []RescaleTask   `json:"tasks"`
	CheckpointMS float64         `json:"checkpoint_duration_ms"`
	PauseMS      float64         `json:"pause_ms,omitempty"`
}

// RescaleVertex is a vertex before and after.
type RescaleVertex struct {
	Vertex string `json:"vertex_id"`
	From   int    `json:"from"`
	To     int    `json:"to"`
}

// RescaleTask is what a task reads of the state.
type RescaleTask struct {
	Vertex  string `json:"vertex_id"`
	Subtask int    `json:"subtask"`
	Bytes   int64  `json:"state_bytes"`
	Moved   int64  `json:"moved_bytes"`
}

// RescaleReport is what a rescale took.
type RescaleReport struct {
	Checkpoint   int64   `json:"checkpoint_id"`
	CheckpointMS float64 `json:"checkpoint_duration_ms"`
	PauseMS      float64 `json:"pause_ms"`
	MovedBytes   int64   `json:"moved_bytes"`
	StayedBytes  int64   `json:"stayed_bytes"`
}

// OfRescale is the view of a rescale.
func OfRescale(job string, r gateway.RescaleResult) Rescaled {
	e := r.Estimate
	out := Rescaled{Job: job, Estimate: RescaleEstimate{
		Checkpoint: int64(e.Checkpoint), SlotsNeeded: e.SlotsNeeded, SlotsHeld: e.SlotsHeld, SlotsFree: e.SlotsFree, StateBytes: e.StateBytes,
		MovedBytes: e.MovedBytes, CheckpointMS: MS(e.CheckpointDuration), PauseMS: MS(e.Pause),
		Vertices: Each(e.Vertices, func(v gateway.VertexRescale) RescaleVertex { return RescaleVertex{string(v.Vertex), v.From, v.To} }),
		Tasks: Each(e.Tasks, func(t gateway.TaskRead) RescaleTask {
			return RescaleTask{string(t.Task.Vertex), t.Task.Subtask, t.Bytes, t.Moved}
		}),
	}}
	if x := r.Report; x != nil {
		out.Report = &RescaleReport{int64(x.Checkpoint), MS(x.CheckpointDuration), MS(x.Pause), x.Moved, x.Stayed}
	}
	return out
}
