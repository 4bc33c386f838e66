package rescale

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Event is what happens to a rescale. Every event has a stable one-line String.
type Event interface {
	event()
	String() string
}

// Requested: somebody wants another parallelism.
type Requested struct {
	Request gateway.RescaleJob
	Plan    Plan // in force
	// NotRunning says why the job cannot be rescaled now; empty: it can.
	NotRunning string
	// To comes back in the Answer.
	To int
}

// Planned answers CallPlan.
type Planned struct {
	Graph *job.Graph
	Err   error
}

// Surveyed answers Survey.
type Surveyed struct {
	Estimate gateway.RescaleEstimate
	Problem  error // why the state does not fit the graph
}

// Checkpointed answers TakeCheckpoint.
type Checkpointed struct {
	ID       checkpoint.ID
	Duration time.Duration
	Problem  string // why it did not complete; empty: it did
}

// Recorded answers Record.
type Recorded struct{}

// Short: the tasks wait for slots.
type Short struct{}

// Deployed: they have got them.
type Deployed struct{}

// Running: all tasks of the graph that the scheduler has in force are RUNNING.
type Running struct {
	Graph         *job.Graph
	Checkpoint    checkpoint.ID // that they were started from
	Moved, Stayed int64
}

// Failed: the tasks of the new plan cannot run, and wait for another plan.
type Failed struct{ Failure job.Failure }

// Ended: the job is terminal.
type Ended struct{ State job.State }

// Tick: time has passed; the loop sends it when the deadline that the core reported is reached.
type Tick struct{}

func (Requested) event()    {}
func (Planned) event()      {}
func (Surveyed) event()     {}
func (Checkpointed) event() {}
func (Recorded) event()     {}
func (Short) event()        {}
func (Deployed) event()     {}
func (Running) event()      {}
func (Failed) event()       {}
func (Ended) event()        {}
func (Tick) event()         {}

// Effect is what has to be done. The loop does it after Step has returned. Every effect has a stable one-line String.
type Effect interface {
	effect()
	String() string
}

// CallPlan: have an executor plan the job again, without looking at its input; answer with Planned.
type CallPlan struct {
	Parallelism int
	Operators   map[string]int
}

// Survey: look at the slots, and estimate; answer with Surveyed.
type Survey struct{ Graph *job.Graph }

// TakeCheckpoint: ask the coordinator for an ordinary checkpoint; answer with Checkpointed.
type TakeCheckpoint struct{}

// Record: see to it that the next job master goes on by this plan; answer with Recorded when that is durable.
type Record struct{ Plan Plan }

// Replan: give the scheduler another graph.
type Replan struct {
	Graph *job.Graph
	Trial bool
}

// Answer is the end of a request.
type Answer struct {
	To       int // see Requested
	Estimate gateway.RescaleEstimate
	Report   *gateway.RescaleReport // nil: a dry run, or an error
	Err      error
}

// Note is a line of the job's timeline.
type Note string

func (CallPlan) effect()       {}
func (Survey) effect()         {}
func (TakeCheckpoint) effect() {}
func (Record) effect()         {}
func (Replan) effect()         {}
func (Answer) effect()         {}
func (Note) effect()           {}
