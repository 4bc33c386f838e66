package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// TestStrategy plays failures and checkpoints against each strategy. A script is a line of words: t, i (a failure of class task or
// infrastructure), T (one of class task that is merged into the restart), c (a completed checkpoint), r (all tasks run), +duration (time passes). The answer is the delay of
// each failure, or "give-up".
func TestStrategy(t *testing.T) {
	exponential := job.RestartOptions{Strategy: job.ExponentialDelay, InitialDelay: 100 * time.Millisecond, MaxDelay: time.Second, Multiplier: 3, Jitter: -1, ResetAfter: time.Hour, Attempts: 3}
	with := func(o job.RestartOptions, change func(*job.RestartOptions)) job.RestartOptions { change(&o); return o }
	fixed := with(exponential, func(o *job.RestartOptions) { o.Strategy = job.FixedDelay })
	rate := with(exponential, func(o *job.RestartOptions) { o.Strategy, o.Window = job.FailureRate, time.Minute })
	for _, c := range []struct {
		name, script, want string
		opts               job.RestartOptions
	}{
		{"delay grows to its limit", "i i i i i", "100ms 300ms 900ms 1s 1s", exponential},
		{"task failures are limited", "t t t t", "100ms 300ms 900ms give-up", exponential},
		{"infrastructure failures are not", "t i i t i t i t", "100ms 300ms 900ms 1s 1s 1s 1s give-up", exponential},
		{"a checkpoint sets count and delay back", "t t t c t t t t", "100ms 300ms 900ms 100ms 300ms 900ms give-up", exponential},
		{"a quiet time sets count and delay back", "t t t +1h1s t t t t", "100ms 300ms 900ms 100ms 300ms 900ms give-up", exponential},
		{"a time that is not long enough does not", "t t t +59m t", "100ms 300ms 900ms give-up", exponential},
		{"the quiet time begins after the delay", "t +1h t", "100ms 300ms", exponential},
		{"a merged task failure counts", "i T i T i T i T", "100ms 300ms 900ms 1s give-up", exponential},
		{"but once per restart", "t T T t T t T t", "100ms 300ms 900ms give-up", exponential},
		{"a run that outlasts the delay before it sets the delay back", "i i +300ms r +300ms i i", "100ms 300ms 100ms 300ms", exponential},
		{"a shorter one does not", "i i +300ms r +299ms i", "100ms 300ms 900ms", exponential},
		{"nor does a time without all tasks", "i i +10m i", "100ms 300ms 900ms", exponential},
		{"nor a run that a task failure ends", "t t +300ms r +10m t t", "100ms 300ms 900ms give-up", exponential},
		{"a multiplier below one does not shrink the delay", "i i", "100ms 100ms", with(exponential, func(o *job.RestartOptions) { o.Multiplier = 0.1 })},
		{"an unknown strategy is the default", "i i t t t t", "100ms 300ms 900ms 1s 1s give-up", with(exponential, func(o *job.RestartOptions) { o.Strategy = "hope" })},
		{"fixed: every failure counts, checkpoints do not help", "t i c i t", "100ms 100ms 100ms give-up", fixed},
		{"fixed: merged failures are one", "t T T t T t", "100ms 100ms 100ms", fixed},
		{"rate: too many in the window", "t i t c i", "100ms 100ms 100ms give-up", rate},
		{"rate: the window slides", "t +30s t t +29s +1s t t", "100ms 100ms 100ms 100ms give-up", rate},
		{"none", "i", "give-up", with(exponential, func(o *job.RestartOptions) { o.Strategy = job.NoRestart })},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := playStrategy(t, newStrategy(c.opts, "j"), c.script); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
			}
		})
	}
}

func playStrategy(t *testing.T, s strategy, script string) string {
	now := transcriptStart
	var out []string
	answer := func(delay time.Duration, ok bool) {
		if !ok {
			out = append(out, "give-up")
			return
		}
		out = append(out, delay.String())
	}
	for _, word := range strings.Fields(script) {
		switch word {
		case "t":
			answer(s.failed(now, job.FailureTask))
		case "i":
			answer(s.failed(now, job.FailureInfrastructure))
		case "T":
			if !s.merged(job.FailureTask) {
				out = append(out, "give-up")
			}
		case "c":
			s.progressed()
		case "r":
			s.runs(now)
		default:
			now = now.Add(duration(t, word))
		}
	}
	return strings.Join(out, " ")
}

func TestStrategy_JitterStaysInItsShareAndDiffersBetweenJobs(t *testing.T) {
	opts := job.Options{Restart: job.RestartOptions{Jitter: 0.2, Multiplier: 1}}.Normalize().Restart
	seen := map[time.Duration]bool{}
	low, high := time.Hour, time.Duration(0)
	for i := range 200 {
		s := newStrategy(opts, job.ID(fmt.Sprintf("job-%d", i)))
		s.stir(float64(i) / 200)
		for range 5 {
			d, _ := s.failed(transcriptStart, job.FailureInfrastructure)
			if d < 80*time.Millisecond || d > 120*time.Millisecond {
				t.Fatalf("delay %s is more than 20%% away from 100ms", d)
			}
			low, high, seen[d] = min(low, d), max(high, d), true
		}
	}
	if len(seen) < 990 || low > 81*time.Millisecond || high < 119*time.Millisecond {
		t.Errorf("1000 delays have %d values in [%s, %s]", len(seen), low, high)
	}
}

func TestStrategy_GiveUpNamesLimitAndCause(t *testing.T) {
	f := job.Failure{Class: job.FailureTask, Operator: "parse", Message: "boom"}
	for _, c := range []struct {
		opts job.RestartOptions
		want string
	}{
		{job.RestartOptions{Attempts: 8}, "gave up after 8 restarts without a completed checkpoint: operator parse: boom"},
		{job.RestartOptions{Strategy: job.FixedDelay, Attempts: 1}, "gave up after 1 restart: operator parse: boom"},
		{job.RestartOptions{Strategy: job.FailureRate, Attempts: 2, Window: time.Minute}, "gave up after 2 restarts within 1m0s: operator parse: boom"},
		{job.RestartOptions{Strategy: job.NoRestart}, "the restart strategy is none: operator parse: boom"},
	} {
		s := newStrategy(c.opts, "j")
		if got := s.giveUp(f); got.String() != c.want || got.Class != job.FailureTask {
			t.Errorf("%s: got %s failure, %q", c.opts.Strategy, got.Class, got)
		}
	}
}
