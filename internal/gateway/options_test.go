package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/job"
)

func TestCheckOptions_NamesTheFlag(t *testing.T) {
	for flag, set := range map[string]func(*job.Options){
		"--parallelism is -1":                        func(o *job.Options) { o.Parallelism = -1 },
		"--parallelism is 129":                       func(o *job.Options) { o.Parallelism = 129 },
		"--max-parallelism is 40000":                 func(o *job.Options) { o.MaxParallelism = 40000 },
		"--checkpoint-timeout is -1s":                func(o *job.Options) { o.Checkpoint.Timeout = -time.Second },
		"--checkpoint-interval-during-backlog is 9s": func(o *job.Options) { o.Checkpoint.IntervalDuringBacklog = 9 * time.Second },
		"--checkpoint-interval-during-backlog is 2s": func(o *job.Options) {
			o.Checkpoint = job.CheckpointOptions{Interval: time.Second, MinPause: 3 * time.Second, IntervalDuringBacklog: 2 * time.Second}
		},
		"--checkpoint-min-pause is -1s":         func(o *job.Options) { o.Checkpoint.MinPause = -time.Second },
		"--checkpoint-max-concurrent is 5":      func(o *job.Options) { o.Checkpoint.MaxConcurrent = 5 },
		"--checkpoint-retained is -1":           func(o *job.Options) { o.Checkpoint.Retained = -1 },
		"--checkpoint-tolerable-failures is -2": func(o *job.Options) { o.Checkpoint.TolerableFailures = -2 },
		"--restart-strategy is sometimes":       func(o *job.Options) { o.Restart.Strategy = "sometimes" },
		"--restart-multiplier is 0.5":           func(o *job.Options) { o.Restart.Multiplier = 0.5 },
		"--restart-jitter is 2":                 func(o *job.Options) { o.Restart.Jitter = 2 },
		"--restart-attempts is -1":              func(o *job.Options) { o.Restart.Attempts = -1 },
		"--batch-size is -1":                    func(o *job.Options) { o.Exchange.BatchSize = -1 },
		"--credits is -1":                       func(o *job.Options) { o.Exchange.Credits = -1 },
	} {
		var o job.Options
		set(&o)
		err := CheckOptions(o)
		if CodeOf(err) != InvalidArgument || ReasonOf(err) != ReasonBadParameter || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v, want %s", err, flag)
		}
	}
	if err := CheckOptions(job.Options{}); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	o := job.Options{Checkpoint: job.CheckpointOptions{Interval: -1}, Exchange: job.ExchangeOptions{Linger: -1}}
	if err := CheckOptions(o); err != nil {
		t.Errorf("negative interval and linger mean never, and are refused: %v", err)
	}
}
