package sim

import (
	"encoding/binary"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/coordinator"
)

// simHook is the master hook of the jobs that have one: it keeps the id of the checkpoint.
const simHook = "hook"

// callHook calls the hook beside the loop.
func (m *master) callHook(id checkpoint.ID) {
	m.s.after(m.s.storageDelay(), "call hook", func() {
		if m.life.over {
			return
		}
		m.s.watch.hooked[id] = true
		answer := coordinator.HooksCalled{ID: id, States: []checkpoint.MasterState{{Hook: simHook, State: hookState(id)}}}
		if m.s.fault("hook fails", m.s.cfg.Faults.HookFails) {
			answer = coordinator.HooksCalled{ID: id, Err: "the hook is not well"}
		}
		m.s.after(m.s.latency(), "hook answered", func() { m.take(func() { m.feed(answer) }) })
	})
}

func hookState(id checkpoint.ID) []byte { return binary.AppendUvarint(nil, uint64(id)) }

// checkHook: a completed checkpoint has the state that the hook has given for it.
func (w *watcher) checkHook(s *Sim, md *checkpoint.Metadata) {
	want := len(s.work.graph.MasterHooks)
	if len(md.MasterStates) != want || want > 0 && !slices.Equal(md.MasterStates[0].State, hookState(md.ID)) {
		s.violate("hooks", "checkpoint %d has the hook states %v", md.ID, md.MasterStates)
	}
}
