package view

import (
	"time"

	"github.com/weirstream/weir/internal/gateway"
)

// Job is a job.
type Job struct {
	ID           string `json:"job_id"`
	Name         string `json:"name"`
	State        string `json:"state"`
	Detail       string `json:"detail,omitempty"`
	Submitted    string `json:"submitted"`
	Ended        string `json:"ended,omitempty"`
	Restarts     int    `json:"restarts"`
	TasksRunning int    `json:"tasks_running"`
	Tasks        int    `json:"tasks"`
	JobCheckpoints
	LeaderEpoch uint64   `json:"leader_epoch"`
	Fingerprint string   `json:"fingerprint"`
	Vertices    []Vertex `json:"vertices"`
}

// JobCheckpoints is the part of a job about its checkpoints.
type JobCheckpoints struct {
	CheckpointsCompleted int         `json:"checkpoints_completed"`
	CheckpointsFailed    int         `json:"checkpoints_failed"`
	CheckpointsPending   int         `json:"checkpoints_in_progress"`
	CheckpointsRestored  int         `json:"checkpoints_restored"`
	LastCheckpoint       *Checkpoint `json:"last_checkpoint,omitempty"`
	LastRestore          *Restore    `json:"last_restore,omitempty"`
	Degraded             string      `json:"degraded,omitempty"`
	StoppedWith          string      `json:"stopped_with,omitempty"`
	Backlog              string      `json:"backlog,omitempty"`
}

// Vertex is a vertex of a job with its tasks.
type Vertex struct {
	ID          string `json:"vertex_id"`
	Name        string `json:"name"`
	Parallelism int    `json:"parallelism"`
	Tasks       []Task `json:"tasks"`
}

// Task is the current attempt of a task.
type Task struct {
	Subtask    int    `json:"subtask"`
	Attempt    int    `json:"attempt"`
	State      string `json:"state"`
	Executor   string `json:"executor_id"`
	RecordsIn  int64  `json:"records_in"`
	RecordsOut int64  `json:"records_out"`
	Failure    string `json:"failure,omitempty"`
}

// Checkpoint is a checkpoint or savepoint.
type Checkpoint struct {
	ID           int64   `json:"checkpoint_id"`
	Kind         string  `json:"kind"`
	State        string  `json:"state"`
	Triggered    string  `json:"triggered"`
	SentMS       float64 `json:"sent_ms"`
	DurationMS   float64 `json:"duration_ms"`
	NotifiedMS   float64 `json:"notified_ms"`
	StateBytes   int64   `json:"state_bytes"`
	Path         string  `json:"path,omitempty"`
	Failure      string  `json:"failure,omitempty"`
	Tasks        int     `json:"tasks"`
	Acknowledged int     `json:"tasks_acknowledged"`
	Restored     bool    `json:"restored"`
	Discarded    bool    `json:"discarded"`
}

// CheckpointDetail is a checkpoint with its subtasks.
type CheckpointDetail struct {
	Checkpoint
	Vertices []VertexCheckpoint `json:"vertices"`
	Subtasks []Subtask          `json:"subtasks"`
}

// Explanation says where the time of a checkpoint went.
type Explanation struct {
	Checkpoint
	Phases    []Phase  `json:"phases"`
	Sentences []string `json:"explanation"`
}

// Phase is a part of the time of a checkpoint.
type Phase struct {
	Name   string  `json:"phase"`
	TookMS float64 `json:"took_ms"`
}

// Subtask is the part of one subtask in a checkpoint.
type Subtask struct {
	Vertex       string  `json:"vertex_id"`
	Subtask      int     `json:"subtask"`
	Acknowledged bool    `json:"acknowledged"`
	Late         bool    `json:"late"`
	LatencyMS    float64 `json:"latency_ms"`
	StartDelayMS float64 `json:"start_delay_ms"`
	AlignmentMS  float64 `json:"alignment_ms"`
	SyncMS       float64 `json:"sync_ms"`
	AsyncMS      float64 `json:"async_ms"`
	StateBytes   int64   `json:"state_bytes"`
}

// Stopped is a job that has ended with a savepoint.
type Stopped struct {
	Job        string  `json:"job_id"`
	State      string  `json:"state"`
	ID         int64   `json:"checkpoint_id"`
	Path       string  `json:"path"`
	DurationMS float64 `json:"duration_ms"`
}

// Triggered is a checkpoint or savepoint that was asked for and has completed.
type Triggered struct {
	Job        string  `json:"job_id"`
	ID         int64   `json:"checkpoint_id"`
	Path       string  `json:"path"`
	DurationMS float64 `json:"duration_ms"`
}

// Executor is a task executor.
type Executor struct {
	ID         string   `json:"executor_id"`
	Address    string   `json:"address"`
	Slots      int      `json:"slots"`
	FreeSlots  int      `json:"free_slots"`
	Jobs       []string `json:"jobs"`
	Registered string   `json:"registered"`
	Heartbeat  string   `json:"last_heartbeat"`
	Version    string   `json:"version"`
}

// Time is how times are written; empty for none.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Each makes views of a list; the list of an empty one is empty, not null.
func Each[T, V any](list []T, view func(T) V) []V {
	out := make([]V, len(list))
	for i, v := range list {
		out[i] = view(v)
	}
	return out
}

// optional makes a view of what may not be there.
func optional[T, V any](v *T, view func(T) V) *V {
	if v == nil {
		return nil
	}
	out := view(*v)
	return &out
}

// OfJob is the view of a job.
func OfJob(s gateway.JobStatus) Job {
	running, tasks := s.CountTasks()
	v := Job{
		ID: string(s.ID), Name: s.Name, State: s.State.String(), Detail: s.Detail, Submitted: Time(s.Submitted), Ended: Time(s.Ended),
		Restarts: s.Restarts, TasksRunning: running, Tasks: tasks,
		LeaderEpoch: uint64(s.Epoch), Fingerprint: s.Fingerprint, Vertices: Each(s.Vertices, ofVertex),
		JobCheckpoints: JobCheckpoints{
			CheckpointsCompleted: s.Completed, CheckpointsFailed: s.Failed, CheckpointsPending: s.InProgress, CheckpointsRestored: s.Restored,
			LastCheckpoint: optional(s.Last, OfCheckpoint), LastRestore: optional(s.LastRestore, ofRestore), Degraded: s.Degraded, Backlog: s.Backlog,
			StoppedWith: s.StoppedWith,
		},
	}
	return v
}

func ofVertex(v gateway.VertexStatus) Vertex {
	return Vertex{string(v.ID), v.Name, v.Parallelism, Each(v.Tasks, ofTask)}
}

func ofTask(t gateway.TaskStatus) Task {
	return Task{
		Subtask: t.Attempt.Task.Subtask, Attempt: t.Attempt.Attempt, State: t.State.String(), Executor: string(t.Executor),
		RecordsIn: t.RecordsIn, RecordsOut: t.RecordsOut, Failure: t.Failure,
	}
}

// OfCheckpoint is the view of a checkpoint.
func OfCheckpoint(s gateway.CheckpointStatus) Checkpoint {
	return Checkpoint{
		ID: int64(s.ID), Kind: s.Kind.String(), State: s.State.String(), Triggered: Time(s.Triggered), SentMS: MS(s.Sent), DurationMS: MS(s.Duration), NotifiedMS: MS(s.Notified),
		StateBytes: s.StateBytes, Path: s.Path, Failure: s.Failure, Tasks: s.Tasks, Acknowledged: s.Acknowledged,
		Restored: s.Restored, Discarded: s.Discarded,
	}
}

// OfSubtask is the view of the part of one subtask in a checkpoint.
func OfSubtask(s gateway.SubtaskCheckpoint) Subtask {
	return Subtask{
		Vertex: string(s.Task.Vertex), Subtask: s.Task.Subtask, Acknowledged: s.Acknowledged, Late: s.Late, LatencyMS: MS(s.Latency),
		StartDelayMS: MS(s.Metrics.StartDelay), AlignmentMS: MS(s.Metrics.Alignment),
		SyncMS: MS(s.Metrics.Sync), AsyncMS: MS(s.Metrics.Async), StateBytes: s.Metrics.StateBytes,
	}
}

// OfExecutor is the view of a task executor.
func OfExecutor(e gateway.ExecutorStatus) Executor {
	return Executor{
		ID: string(e.ID), Address: e.Address, Slots: e.Slots, FreeSlots: e.FreeSlots, Jobs: append([]string{}, e.Jobs...),
		Registered: Time(e.Registered), Heartbeat: Time(e.Heartbeat), Version: e.Version,
	}
}
