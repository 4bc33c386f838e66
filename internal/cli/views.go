package cli

import (
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The views are what -o json prints. docs/cli.md describes them; fields are only ever added.

// jobView is a job.
type jobView struct {
	ID           string `json:"job_id"`
	Name         string `json:"name"`
	State        string `json:"state"`
	Detail       string `json:"detail,omitempty"`
	Submitted    string `json:"submitted"`
	Ended        string `json:"ended,omitempty"`
	Restarts     int    `json:"restarts"`
	TasksRunning int    `json:"tasks_running"`
	Tasks        int    `json:"tasks"`
	jobCheckpointsView
	LeaderEpoch uint64       `json:"leader_epoch"`
	Fingerprint string       `json:"fingerprint"`
	Vertices    []vertexView `json:"vertices"`
}

// jobCheckpointsView is the part of a job about its checkpoints.
type jobCheckpointsView struct {
	CheckpointsCompleted int             `json:"checkpoints_completed"`
	CheckpointsFailed    int             `json:"checkpoints_failed"`
	CheckpointsPending   int             `json:"checkpoints_in_progress"`
	CheckpointsRestored  int             `json:"checkpoints_restored"`
	LastCheckpoint       *checkpointView `json:"last_checkpoint,omitempty"`
	LastRestore          *restoreView    `json:"last_restore,omitempty"`
	Degraded             string          `json:"degraded,omitempty"`
	Backlog              string          `json:"backlog,omitempty"`
}

type vertexView struct {
	ID          string     `json:"vertex_id"`
	Name        string     `json:"name"`
	Parallelism int        `json:"parallelism"`
	Tasks       []taskView `json:"tasks"`
}

type taskView struct {
	Subtask    int    `json:"subtask"`
	Attempt    int    `json:"attempt"`
	State      string `json:"state"`
	Executor   string `json:"executor_id"`
	RecordsIn  int64  `json:"records_in"`
	RecordsOut int64  `json:"records_out"`
	Failure    string `json:"failure,omitempty"`
}

// checkpointView is a checkpoint or savepoint.
type checkpointView struct {
	ID           int64   `json:"checkpoint_id"`
	Kind         string  `json:"kind"`
	State        string  `json:"state"`
	Triggered    string  `json:"triggered"`
	DurationMS   float64 `json:"duration_ms"`
	StateBytes   int64   `json:"state_bytes"`
	Path         string  `json:"path,omitempty"`
	Failure      string  `json:"failure,omitempty"`
	Tasks        int     `json:"tasks"`
	Acknowledged int     `json:"tasks_acknowledged"`
	Restored     bool    `json:"restored"`
	Discarded    bool    `json:"discarded"`
}

// checkpointDetailView is a checkpoint with its subtasks.
type checkpointDetailView struct {
	checkpointView
	Vertices []vertexCheckpointView `json:"vertices"`
	Subtasks []subtaskView          `json:"subtasks"`
}

// explanationView says where the time of a checkpoint went.
type explanationView struct {
	checkpointView
	Phases    []phaseView `json:"phases"`
	Sentences []string    `json:"explanation"`
}

type phaseView struct {
	Name   string  `json:"phase"`
	TookMS float64 `json:"took_ms"`
}

type subtaskView struct {
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

// triggeredView is a checkpoint or savepoint that was asked for and has completed.
type triggeredView struct {
	Job        string  `json:"job_id"`
	ID         int64   `json:"checkpoint_id"`
	Path       string  `json:"path"`
	DurationMS float64 `json:"duration_ms"`
}

type executorView struct {
	ID         string   `json:"executor_id"`
	Address    string   `json:"address"`
	Slots      int      `json:"slots"`
	FreeSlots  int      `json:"free_slots"`
	Jobs       []string `json:"jobs"`
	Registered string   `json:"registered"`
	Heartbeat  string   `json:"last_heartbeat"`
	Version    string   `json:"version"`
}

func viewTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func viewMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// viewEach makes views of a list; the list of an empty one is empty, not null.
func viewEach[T, V any](list []T, view func(T) V) []V {
	out := make([]V, len(list))
	for i, v := range list {
		out[i] = view(v)
	}
	return out
}

// viewOptional makes a view of what may not be there.
func viewOptional[T, V any](v *T, view func(T) V) *V {
	if v == nil {
		return nil
	}
	out := view(*v)
	return &out
}

func viewJob(s gateway.JobStatus) jobView {
	running, tasks := countTasks(s)
	v := jobView{
		ID: string(s.ID), Name: s.Name, State: s.State.String(), Detail: s.Detail, Submitted: viewTime(s.Submitted), Ended: viewTime(s.Ended),
		Restarts: s.Restarts, TasksRunning: running, Tasks: tasks,
		LeaderEpoch: uint64(s.Epoch), Fingerprint: s.Fingerprint, Vertices: viewEach(s.Vertices, viewVertex),
		jobCheckpointsView: jobCheckpointsView{
			CheckpointsCompleted: s.Completed, CheckpointsFailed: s.Failed, CheckpointsPending: s.InProgress, CheckpointsRestored: s.Restored,
			LastCheckpoint: viewOptional(s.Last, viewCheckpoint), LastRestore: viewOptional(s.LastRestore, viewRestore), Degraded: s.Degraded, Backlog: s.Backlog,
		},
	}
	return v
}

func countTasks(s gateway.JobStatus) (running, tasks int) {
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			tasks++
			if t.State == job.TaskRunning {
				running++
			}
		}
	}
	return running, tasks
}

func viewVertex(v gateway.VertexStatus) vertexView {
	return vertexView{string(v.ID), v.Name, v.Parallelism, viewEach(v.Tasks, viewTask)}
}

func viewTask(t gateway.TaskStatus) taskView {
	return taskView{
		Subtask: t.Attempt.Task.Subtask, Attempt: t.Attempt.Attempt, State: t.State.String(), Executor: string(t.Executor),
		RecordsIn: t.RecordsIn, RecordsOut: t.RecordsOut, Failure: t.Failure,
	}
}

func viewCheckpoint(s gateway.CheckpointStatus) checkpointView {
	return checkpointView{
		ID: int64(s.ID), Kind: s.Kind.String(), State: s.State.String(), Triggered: viewTime(s.Triggered), DurationMS: viewMS(s.Duration),
		StateBytes: s.StateBytes, Path: s.Path, Failure: s.Failure, Tasks: s.Tasks, Acknowledged: s.Acknowledged,
		Restored: s.Restored, Discarded: s.Discarded,
	}
}

func viewPhase(p phase) phaseView { return phaseView{p.name, viewMS(p.took)} }

func viewSubtask(s gateway.SubtaskCheckpoint) subtaskView {
	return subtaskView{
		Vertex: string(s.Task.Vertex), Subtask: s.Task.Subtask, Acknowledged: s.Acknowledged, Late: s.Late, LatencyMS: viewMS(s.Latency),
		StartDelayMS: viewMS(s.Metrics.StartDelay), AlignmentMS: viewMS(s.Metrics.Alignment),
		SyncMS: viewMS(s.Metrics.Sync), AsyncMS: viewMS(s.Metrics.Async), StateBytes: s.Metrics.StateBytes,
	}
}

func viewExecutor(e gateway.ExecutorStatus) executorView {
	return executorView{
		ID: string(e.ID), Address: e.Address, Slots: e.Slots, FreeSlots: e.FreeSlots, Jobs: append([]string{}, e.Jobs...),
		Registered: viewTime(e.Registered), Heartbeat: viewTime(e.Heartbeat), Version: e.Version,
	}
}
