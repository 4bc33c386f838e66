package board

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/gateway"
)

// checkpointStates are the coordinator's states in the words of the gateway.
var checkpointStates = map[coordinator.State]gateway.CheckpointState{
	coordinator.StatePending:    gateway.CheckpointPending,
	coordinator.StateFinalizing: gateway.CheckpointFinalizing,
	coordinator.StateCompleted:  gateway.CheckpointCompleted,
	coordinator.StateAborted:    gateway.CheckpointAborted,
}

// Describe gives a checkpoint as people see it; location says where a directory is.
func (v View) Describe(s coordinator.Stats, location func(dir string) string) gateway.CheckpointStatus {
	out := gateway.CheckpointStatus{
		ID: s.ID, Kind: s.Kind, State: checkpointStates[s.State], Triggered: s.Triggered, StateBytes: s.Bytes,
		Sent: s.Sent, Duration: s.Duration, Notified: s.Notified,
		Path: location(s.Dir), Tasks: s.Tasks, Acknowledged: s.Acked, Restored: s.ID == v.Restored, Discarded: s.Discarded,
	}
	if s.Reason != checkpoint.None {
		out.Failure = string(s.Reason)
		if s.Failure != "" {
			out.Failure += ": " + s.Failure
		}
	}
	return out
}

// History gives all checkpoints that are remembered, newest first.
func (v View) History(location func(dir string) string) gateway.CheckpointHistory {
	out := gateway.CheckpointHistory{CheckpointCounts: v.Status.CheckpointCounts, LastRestore: v.Status.LastRestore, Summary: v.Summary}
	for _, s := range slices.Backward(v.Checkpoints) {
		out.Checkpoints = append(out.Checkpoints, v.Describe(s, location))
	}
	return out
}

// Detail gives a checkpoint with the parts of its tasks.
func (v View) Detail(s coordinator.Stats, location func(dir string) string) gateway.CheckpointDetail {
	out := gateway.CheckpointDetail{CheckpointStatus: v.Describe(s, location)}
	for _, t := range s.Subtasks {
		if t.Finished && !t.Acked {
			continue // it had finished before: it has no part in this checkpoint
		}
		out.Subtasks = append(out.Subtasks, gateway.SubtaskCheckpoint{
			Task: t.Task, Acknowledged: t.Acked, Late: t.Late, Latency: t.Latency, Metrics: t.Metrics,
		})
	}
	for _, x := range s.PerVertex() {
		out.Vertices = append(out.Vertices, gateway.VertexCheckpoint{
			Vertex: x.Vertex, Tasks: x.Tasks, Acknowledged: x.Acked, Latency: x.Latency, Metrics: x.Metrics,
		})
	}
	return out
}
