package gateway

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// CheckOptions refuses options that no job can run with. The names are those of the flags of weir run.
func CheckOptions(o job.Options) error {
	c, r, x := o.Checkpoint, o.Restart, o.Exchange
	for _, check := range []struct {
		bad        bool
		flag, want string
		value      any
	}{
		{o.Parallelism < 0, "--parallelism", "at least 1", o.Parallelism},
		{
			o.MaxParallelism < 0 || o.MaxParallelism > job.MaxMaxParallelism, "--max-parallelism",
			fmt.Sprintf("1 to %d", job.MaxMaxParallelism), o.MaxParallelism,
		},
		{o.Parallelism > o.Normalize().MaxParallelism, "--parallelism", "at most --max-parallelism", o.Parallelism},
		{c.MinPause < 0, "--checkpoint-min-pause", "0 or more", c.MinPause},
		{
			c.IntervalDuringBacklog > 0 && c.IntervalDuringBacklog < o.Normalize().Checkpoint.Interval, "--checkpoint-interval-during-backlog",
			"0, or no less than --checkpoint-interval", c.IntervalDuringBacklog,
		},
		{c.IntervalDuringBacklog > 0 && c.IntervalDuringBacklog < c.MinPause, "--checkpoint-interval-during-backlog", "0, or no less than --checkpoint-min-pause", c.IntervalDuringBacklog},
		{c.Timeout < 0, "--checkpoint-timeout", "more than 0", c.Timeout},
		{
			c.MaxConcurrent < 0 || c.MaxConcurrent > job.MaxConcurrentCheckpoints, "--checkpoint-max-concurrent",
			fmt.Sprintf("1 to %d", job.MaxConcurrentCheckpoints), c.MaxConcurrent,
		},
		{c.Retained < 0, "--checkpoint-retained", "at least 1", c.Retained},
		{c.InlineLimit < 0 || c.InlineLimit > job.MaxInlineLimit, "--inline-limit", fmt.Sprintf("1 to %d bytes", job.MaxInlineLimit), c.InlineLimit},
		{!knownCompression(c.Compression), "--state-compression", "none or zstd", c.Compression},
		{c.TolerableFailures < 0, "--checkpoint-tolerable-failures", "0 or more", c.TolerableFailures},
		{!knownStrategy(r.Strategy), "--restart-strategy", "exponential-delay, fixed-delay, failure-rate or none", r.Strategy},
		{r.InitialDelay < 0, "--restart-delay", "0 or more", r.InitialDelay},
		{r.MaxDelay < 0, "--restart-max-delay", "0 or more", r.MaxDelay},
		{r.Multiplier < 0 || r.Multiplier > 0 && r.Multiplier < 1, "--restart-multiplier", "at least 1", r.Multiplier},
		{r.Jitter < 0 || r.Jitter > 1, "--restart-jitter", "0 to 1", r.Jitter},
		{r.ResetAfter < 0, "--restart-reset-after", "0 or more", r.ResetAfter},
		{r.Attempts < 0, "--restart-attempts", "0 or more", r.Attempts},
		{r.Window < 0, "--restart-window", "0 or more", r.Window},
		{x.BatchSize < 0, "--batch-size", "at least 1", x.BatchSize},
		{x.Credits < 0, "--credits", "at least 1", x.Credits},
		{
			o.Normalize().State.Backend != job.MemoryBackend && o.State.Backend != job.PebbleBackend, "--state-backend",
			fmt.Sprintf("%s or %s", job.MemoryBackend, job.PebbleBackend), o.State.Backend,
		},
	} {
		if check.bad {
			return &Error{
				Code: InvalidArgument, Reason: ReasonBadParameter,
				Message: fmt.Sprintf("%s is %v", check.flag, check.value), Remedy: "it can be " + check.want,
			}
		}
	}
	return nil
}

func knownCompression(c job.Compression) bool {
	return slices.Contains([]job.Compression{"", job.NoCompression, job.ZstdCompression}, c)
}

func knownStrategy(s job.Strategy) bool {
	return slices.Contains([]job.Strategy{"", job.ExponentialDelay, job.FixedDelay, job.FailureRate, job.NoRestart}, s)
}
