package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// submission is the flags of a command that submits a job.
type submission struct {
	set      []string
	from     string
	allow    bool
	fallback bool
	claim    bool
	options  job.Options
	restart  choice
	compress choice
	backend  choice
}

// add defines the flags. Their defaults are those of the job master, so that the help shows them.
func (s *submission) add(cmd *cobra.Command) {
	s.options = job.Options{}.Normalize()
	s.options.Parallelism = 0
	s.restart = choiceOf(string(job.ExponentialDelay), string(job.FixedDelay), string(job.FailureRate), string(job.NoRestart))
	o, f := &s.options, cmd.Flags()
	f.StringArrayVar(&s.set, "set", nil, "set a parameter of the job to a value: `NAME=VALUE`")
	f.StringVar(&s.from, "from", "", "start from the checkpoint or savepoint in the directory `PATH`, or from the newest one of the job whose directory it is")
	f.BoolVar(&s.allow, "allow-non-restored-state", false, "drop the state of operators that the job does not have")
	f.BoolVar(&s.fallback, "fallback", false, "when the checkpoint cannot be read, start from the next older one of its job")
	f.BoolVar(&s.claim, "claim", false, "give what --from names to the job, which deletes it when newer checkpoints have taken its place")
	f.IntVar(&o.Parallelism, "parallelism", 0, "subtasks of each operator that does not choose itself (default: the job's choice, or 1)")
	f.IntVar(&o.MaxParallelism, "max-parallelism", o.MaxParallelism, "number of key groups, the limit of the parallelism that the state can be restored at")

	c := &o.Checkpoint
	f.DurationVar(&c.Interval, "checkpoint-interval", c.Interval, "time between checkpoints; 0: none but those asked for")
	f.DurationVar(&c.IntervalDuringBacklog, intervalDuringBacklog, 0,
		"time between checkpoints while a source works off a backlog, no less than --checkpoint-interval (default: the same, or what the job master says); 0: none meanwhile but those asked for")
	f.DurationVar(&c.MinPause, "checkpoint-min-pause", c.MinPause, "least time between the end of a checkpoint and the next")
	f.DurationVar(&c.Timeout, "checkpoint-timeout", c.Timeout, "time after which a checkpoint is aborted")
	f.IntVar(&c.MaxConcurrent, "checkpoint-max-concurrent", c.MaxConcurrent, "checkpoints that may be under way at a time; savepoints do not wait for it")
	f.IntVar(&c.Retained, "checkpoint-retained", c.Retained, "completed checkpoints to keep")
	f.IntVar(&c.TolerableFailures, "checkpoint-tolerable-failures", c.TolerableFailures, "failed checkpoints in a row that do not restart the job")
	f.IntVar(&c.InlineLimit, "inline-limit", c.InlineLimit, "largest piece of state that is kept in the metadata of a checkpoint and not in a file, in `BYTES`; at most 1048576")
	f.BoolVar(&c.DeleteOnCancel, "checkpoint-delete-on-cancel", c.DeleteOnCancel, "delete the checkpoints of a job that is canceled")

	f.DurationVar(&c.DegradedAfter, "checkpoint-degraded-after", 0, "time without a completed checkpoint after which the job is shown as DEGRADED; 0: 10 intervals, at least 30s; negative: never")

	r := &o.Restart
	f.Var(&s.restart, "restart-strategy", "when a job restarts after a failure")
	f.DurationVar(&r.InitialDelay, "restart-delay", r.InitialDelay, "delay of a restart; of the first one with exponential-delay")
	f.DurationVar(&r.MaxDelay, "restart-max-delay", r.MaxDelay, "longest delay, with exponential-delay")
	f.Float64Var(&r.Multiplier, "restart-multiplier", r.Multiplier, "growth of the delay, with exponential-delay")
	f.Float64Var(&r.Jitter, "restart-jitter", r.Jitter, "share of the delay that is random, with exponential-delay")
	f.DurationVar(&r.ResetAfter, "restart-reset-after", r.ResetAfter, "time without a failure after which the delay is the first again, with exponential-delay")
	f.IntVar(&r.Attempts, "restart-attempts", r.Attempts, "restarts before the job fails; in a window, with failure-rate")
	f.DurationVar(&r.Window, "restart-window", r.Window, "time in which failures are counted, with failure-rate")

	s.backend = choiceOf(string(job.MemoryBackend), string(job.PebbleBackend))
	s.compress = choiceOf(string(job.NoCompression), string(job.ZstdCompression))
	f.Var(&s.compress, "state-compression", "how state in the files of checkpoints is compressed")
	f.Var(&s.backend, "state-backend", "where keyed state is while the job runs: in the memory of the executors, or on their disks with a part of it in memory")

	x := &o.Exchange
	f.IntVar(&x.BatchSize, "batch-size", x.BatchSize, "most records in a batch between tasks")
	f.DurationVar(&x.Linger, "linger", x.Linger, "how long a record waits for its batch to fill")
	f.IntVar(&x.Credits, "credits", x.Credits, "most batches in flight between two tasks")
}

// read makes a submission of the flags. To the job master a zero means the default, so that a zero that was written is refused, or replaced by
// the value that means it.
func (s *submission) read(cmd *cobra.Command, name string) (gateway.Submission, error) {
	params, err := parseParams(s.set)
	if err != nil {
		return gateway.Submission{}, err
	}
	o := s.options
	o.Restart.Strategy, o.State.Backend = job.Strategy(s.restart.value), job.Backend(s.backend.value)
	o.Checkpoint.Compression = job.Compression(s.compress.value)
	c, r, x := &o.Checkpoint, &o.Restart, &o.Exchange
	for _, f := range []struct {
		name string
		zero bool
	}{
		{"parallelism", o.Parallelism == 0}, {"max-parallelism", o.MaxParallelism == 0},
		{"checkpoint-timeout", c.Timeout == 0}, {"checkpoint-retained", c.Retained == 0}, {"checkpoint-max-concurrent", c.MaxConcurrent == 0},
		{"inline-limit", c.InlineLimit == 0},
		{"restart-delay", r.InitialDelay == 0}, {"restart-max-delay", r.MaxDelay == 0}, {"restart-multiplier", r.Multiplier == 0},
		{"restart-reset-after", r.ResetAfter == 0}, {"restart-attempts", r.Attempts == 0}, {"restart-window", r.Window == 0},
		{"batch-size", x.BatchSize == 0}, {"credits", x.Credits == 0},
	} {
		if f.zero && cmd.Flags().Changed(f.name) {
			return gateway.Submission{}, usagef("--%s is 0; it must be more", f.name)
		}
	}
	if c.Interval == 0 {
		c.Interval = -1
	}
	c.IntervalDuringBacklog = givenInterval(cmd, c.IntervalDuringBacklog)
	if x.Linger == 0 {
		x.Linger = -1
	}
	if r.Jitter == 0 {
		r.Jitter = noJitter
	}
	if s.from == "" && (s.allow || s.fallback || s.claim) {
		return gateway.Submission{}, usagef("--allow-non-restored-state, --fallback and --claim are about a checkpoint: name it with --from")
	}
	return gateway.Submission{
		JobName: name, Params: params, Options: o, RestorePath: s.from, AllowNonRestored: s.allow, Fallback: s.fallback, Claim: s.claim,
	}, nil
}

const intervalDuringBacklog = "checkpoint-interval-during-backlog"

// givenInterval tells a zero that was written, which means none, from a flag that was not given.
func givenInterval(cmd *cobra.Command, d time.Duration) time.Duration {
	if d == 0 && cmd.Flags().Changed(intervalDuringBacklog) {
		return -1
	}
	return d
}

// noJitter is a share of which nothing can be seen.
const noJitter = 1e-12

func parseParams(set []string) (map[string]string, error) {
	params := map[string]string{}
	for _, s := range set {
		name, value, found := strings.Cut(s, "=")
		if !found || name == "" {
			return nil, usagef("--set %s is not NAME=VALUE", s)
		}
		if _, twice := params[name]; twice {
			return nil, usagef("--set gives %s twice", name)
		}
		params[name] = value
	}
	return params, nil
}

// pollPause is the time between two tries of something that others must make possible.
const pollPause = 200 * time.Millisecond
