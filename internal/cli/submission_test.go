package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func submit(t *testing.T, args ...string) (gateway.Submission, error) {
	t.Helper()
	var s submission
	cmd := &cobra.Command{Use: "run"}
	s.add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return s.read(cmd, "flights")
}

func TestSubmission_WithoutFlags_MeansTheDefaults(t *testing.T) {
	got, err := submit(t)
	if err != nil {
		t.Fatal(err)
	}
	want := job.Options{}.Normalize()
	want.Parallelism = 0 // the job's own choice
	if d := cmp.Diff(gateway.Submission{JobName: "flights", Params: map[string]string{}, Options: want}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestSubmission_EveryFlagIsTaken(t *testing.T) {
	got, err := submit(t,
		"--set", "input=a=b,c", "--set", "empty=", "--from", "/sp", "--parallelism", "3", "--max-parallelism", "64",
		"--checkpoint-interval", "1s", "--checkpoint-min-pause", "2s", "--checkpoint-timeout", "3s", "--checkpoint-retained", "4", "--checkpoint-max-concurrent", "2",
		"--checkpoint-tolerable-failures", "5", "--checkpoint-delete-on-cancel", "--checkpoint-degraded-after", "16s", "--checkpoint-interval-during-backlog", "17s",
		"--inline-limit", "18", "--state-compression", "zstd",
		"--restart-strategy", "failure-rate", "--restart-delay", "6s", "--restart-max-delay", "7s", "--restart-multiplier", "8",
		"--restart-jitter", "0.9", "--restart-reset-after", "10s", "--restart-attempts", "11", "--restart-window", "12s",
		"--batch-size", "13", "--linger", "14s", "--credits", "15")
	if err != nil {
		t.Fatal(err)
	}
	want := gateway.Submission{
		JobName: "flights", Params: map[string]string{"input": "a=b,c", "empty": ""}, RestorePath: "/sp",
		Options: job.Options{
			Parallelism: 3, MaxParallelism: 64,
			Checkpoint: job.CheckpointOptions{
				Interval: time.Second, MinPause: 2 * time.Second, Timeout: 3 * time.Second, MaxConcurrent: 2, Retained: 4, TolerableFailures: 5, DeleteOnCancel: true,
				DegradedAfter: 16 * time.Second, IntervalDuringBacklog: 17 * time.Second, InlineLimit: 18, Compression: job.ZstdCompression,
			},
			Restart: job.RestartOptions{
				Strategy: job.FailureRate, InitialDelay: 6 * time.Second, MaxDelay: 7 * time.Second, Multiplier: 8, Jitter: 0.9,
				ResetAfter: 10 * time.Second, Attempts: 11, Window: 12 * time.Second,
			},
			Exchange: job.ExchangeOptions{BatchSize: 13, Linger: 14 * time.Second, Credits: 15},
			State:    job.StateOptions{Backend: job.MemoryBackend},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestSubmission_ZeroIsNeverTakenForTheDefault(t *testing.T) {
	got, err := submit(t, "--checkpoint-interval", "0", "--checkpoint-interval-during-backlog", "0", "--linger", "0", "--restart-jitter", "0")
	if err != nil {
		t.Fatal(err)
	}
	o := got.Options.Normalize()
	if o.Checkpoint.Interval >= 0 || o.Checkpoint.IntervalDuringBacklog >= 0 || o.Exchange.Linger >= 0 || o.Restart.Jitter > 1e-9 {
		t.Errorf("interval %s, linger %s, jitter %v, want none of them", o.Checkpoint.Interval, o.Exchange.Linger, o.Restart.Jitter)
	}
	for _, flag := range []string{"--parallelism", "--checkpoint-timeout", "--restart-delay", "--restart-attempts", "--batch-size", "--credits"} {
		if _, err := submit(t, flag, "0"); err == nil || err.Error() != flag+" is 0; it must be more" {
			t.Errorf("%s 0: %v, want a refusal", flag, err)
		}
	}
}
