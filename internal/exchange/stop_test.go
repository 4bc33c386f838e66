package exchange

import (
	"testing"
	"testing/synctest"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// stopping is the barrier of a checkpoint that stops the job.
func stopping(id int64) element.Element {
	e := barrier(id)
	e.Checkpoint.Stop = job.StopSuspend
	return e
}

// A task that was suspended may finish before its senders have heard that they can; if the stop fails, they go on as before.
func TestSender_BehindABarrierThatStops_NeedsItsReceiverOnlyForRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		g := w.gate(0, 1, 2)
		o := w.connect(t.Context(), 0, 1)
		must(t, o.Outputs[0].Broadcast(stopping(1)))
		must(t, w.fill(o.Outputs[0], 0, 1))
		must(t, o.Outputs[0].Broadcast(stopping(2)))
		synctest.Wait()
		w.networks[w.recv].CloseGate(g)
		synctest.Wait()
		must(t, o.Outputs[0].Broadcast(closing))
		synctest.Wait()
		o.Close()
	})
}
