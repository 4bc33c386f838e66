package sim

import (
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
)

// watchedTask remembers of a task what the barrier invariants are about.
type watchedTask struct {
	restored checkpoint.ID
	notified checkpoint.ID
	over     map[checkpoint.ID]bool // snapshotted here, or given up
	barriers []checkpoint.ID        // by channel: the latest that was taken from it
	closed   []bool                 // by channel: the sender has finished
	canceled checkpoint.ID          // the latest whose cancel marker was taken: it is over here, and so is every earlier one (seed 12345)
}

func newWatchedTask(t *simTask, restored checkpoint.ID) watchedTask {
	return watchedTask{restored: restored, notified: restored, over: map[checkpoint.ID]bool{}, barriers: make([]checkpoint.ID, len(t.inputs)), closed: make([]bool, len(t.inputs))}
}

// process: a record behind a barrier is not processed before that checkpoint is snapshotted or given up; a barrier of a later checkpoint
// means that it is given up.
func (w *watchedTask) process(t *simTask, channel int, b batch) {
	if behind := checkpoint.ID(b.behind); behind > max(w.restored, w.canceled) && !w.over[behind] && behind >= slices.Max(w.barriers) {
		t.s.violate("barrier", "%s processes records of channel %d behind the barrier of checkpoint %d, which it has not snapshotted", t.attempt, channel, behind)
	}
}

// snapshot: all channels are at the barrier, none is behind it.
func (w *watchedTask) snapshot(t *simTask, id checkpoint.ID) {
	if hooks := t.load.graph.MasterHooks; len(hooks) > 0 && t.attempt.Job == t.s.job && !t.s.watch.hooked[id] {
		t.s.violate("hooks", "%s snapshots checkpoint %d before the hook was called", t.attempt, id)
	}
	if w.over[id] {
		t.s.violate("barrier", "%s snapshots checkpoint %d, which was over for it", t.attempt, id)
	}
	w.over[id] = true
	for channel, at := range w.barriers {
		if at != id && !w.closed[channel] {
			t.s.violate("barrier", "%s snapshots checkpoint %d, and channel %d is at the barrier of %d", t.attempt, id, channel, at)
		}
	}
}
