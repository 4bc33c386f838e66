package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
)

// spread describes many measurements by their order.
type spread[T cmp.Ordered] struct{ least, p50, p90, p99, most T }

// spreadOf sorts values, of which there is at least one. A percentile is the smallest value that so many of a hundred do not exceed.
func spreadOf[T cmp.Ordered](values []T) spread[T] {
	slices.Sort(values)
	at := func(percent int) T { return values[(percent*len(values)+99)/100-1] }
	return spread[T]{values[0], at(50), at(90), at(99), values[len(values)-1]}
}

// writeCheckpointSummary says how long the completed ones of a list took and how big they are; savepoints are not among them.
func writeCheckpointSummary(out io.Writer, list []gateway.CheckpointStatus) {
	var took []time.Duration
	var bytes []int64
	var sumTook time.Duration
	var sumBytes int64
	for _, c := range list {
		if c.State == gateway.CheckpointCompleted && c.Kind == checkpoint.Checkpoint {
			took, bytes = append(took, c.Duration), append(bytes, c.StateBytes)
			sumTook, sumBytes = sumTook+c.Duration, sumBytes+c.StateBytes
		}
	}
	n := len(took)
	if n == 0 {
		return
	}
	summary := func(name string, values ...string) {
		line(out, "%s: min %s, avg %s, p50 %s, p90 %s, p99 %s, max %s", name, values[0], values[1], values[2], values[3], values[4], values[5])
	}
	d, b := spreadOf(took), spreadOf(bytes)
	line(out, "")
	summary(fmt.Sprintf("duration of %d completed checkpoints", n), formatDuration(d.least), formatDuration(sumTook/time.Duration(n)),
		formatDuration(d.p50), formatDuration(d.p90), formatDuration(d.p99), formatDuration(d.most))
	summary("size", formatBytes(b.least), formatBytes(sumBytes/int64(n)), formatBytes(b.p50), formatBytes(b.p90), formatBytes(b.p99), formatBytes(b.most))
}
