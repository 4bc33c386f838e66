package stream

import (
	"context"
	"slices"
	"strings"
	"time"
)

// MasterHook is code of a job that runs in its job master, once for the whole job and not in a task: it keeps something outside of Weir in step
// with the job's checkpoints. It is called in the job master's process, which therefore has to be of a program that has the job.
//
// The methods of one hook are called one after another, each with a time limit: ctx ends with it, and with the job master. A method that does
// not return by then has failed, and the hook is not called again before it has returned. A panic is an error.
//
// The order is: Restore or Reset; then Trigger for each checkpoint; Restore or Reset again after a failure of the job, and so on.
type MasterHook interface {
	// Trigger is called for each checkpoint and savepoint before any task hears of it. What it returns is kept in the checkpoint, at most
	// MaxHookState bytes; nil keeps nothing. An error ends the checkpoint, not the job; but see TolerableFailures. A checkpoint that was
	// triggered may never complete.
	Trigger(ctx context.Context, checkpoint int64, timestamp time.Time) ([]byte, error)
	// Restore is called before the tasks start from a checkpoint, with what Trigger returned for it, or nil. Tasks do not start after an error:
	// it is a failure of the job.
	Restore(ctx context.Context, checkpoint int64, state []byte) error
	// Reset is called before the tasks start without a checkpoint. An error is as one of Restore.
	Reset(ctx context.Context) error
}

// JobEndListener is a MasterHook that hears of the end of its job: that it is FINISHED, CANCELED or FAILED, and will not run again. If the job
// master dies at that moment the next one may tell a new hook, which has heard of nothing before; or nobody is told. An error is only logged.
type JobEndListener interface {
	JobEnded(ctx context.Context) error
}

// MaxHookState is how many bytes a hook may keep in a checkpoint.
const MaxHookState = 64 << 10

// MaxHooks is how many master hooks a job may have.
const MaxHooks = 16

// HookEnv is what a hook is opened with.
type HookEnv struct {
	Job         string // name of the job
	JobID       string
	LeaderEpoch uint64 // of the job master: a later one has a higher number, if it keeps records of its jobs
}

// HookDefinition is a master hook of a definition. Runtimes read it.
type HookDefinition struct {
	ID   string
	Open func(HookEnv) (MasterHook, error)
}

// AddMasterHook adds a hook to the job. id names it and its state in checkpoints; as ids of operators it must stay the same between versions. open
// is called in the job master, when the job is submitted and when it is recovered; an error of it refuses the submission.
func AddMasterHook(j *Job, id string, open func(HookEnv) (MasterHook, error)) {
	switch {
	case id == "" || strings.ContainsFunc(id, notInID):
		j.fail("the id %q of a master hook of job %s must be letters, digits, '-', '_' and '.'", id, j.name)
	case open == nil:
		j.fail("master hook %s of job %s has no function that opens it", id, j.name)
	case slices.ContainsFunc(j.hooks, func(h HookDefinition) bool { return h.ID == id }):
		j.fail("two master hooks of job %s have the id %q", j.name, id)
	case len(j.hooks) == MaxHooks:
		j.fail("job %s has more than %d master hooks", j.name, MaxHooks)
	}
	j.hooks = append(j.hooks, HookDefinition{id, open})
}

// MasterHooks are the job's hooks in the order in which they were added.
func (j *Job) MasterHooks() []HookDefinition { return j.hooks }
