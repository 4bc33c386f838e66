package coordinator

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
)

// callHooks has the job's master hooks called, or goes on at once when it has none. No task knows of the checkpoint yet.
func (c *Core) callHooks(p *pending) {
	if len(c.cfg.Graph.MasterHooks) == 0 {
		c.inject(p)
		return
	}
	p.phase = calling
	c.emit(CallHooks{ID: p.id, Timestamp: p.timestamp})
}

// hooksCalled sends the barriers out once every hook has answered: so what a hook has done is before everything that the tasks do for the
// checkpoint, and its state is in before the last ack can come.
func (c *Core) hooksCalled(ev HooksCalled) {
	p := c.lookup(ev.ID)
	if p == nil || p.phase != calling {
		c.stale++ // it was given up meanwhile
		return
	}
	if ev.Err != "" {
		c.abort(p, failure{reason: checkpoint.HookFailure, message: ev.Err})
		return
	}
	p.masterStates = slices.SortedFunc(slices.Values(ev.States), func(a, b checkpoint.MasterState) int { return cmp.Compare(a.Hook, b.Hook) })
	for _, s := range p.masterStates {
		p.stats.Bytes += int64(len(s.State))
	}
	c.inject(p)
}

// inject sends the barriers out.
func (c *Core) inject(p *pending) {
	p.phase = triggered
	p.stats.Sent = c.now.Sub(p.stats.Triggered)
	c.sendTrigger(p, p.exec.triggerSet())
	c.finalizeIfComplete(p)
}

// hooks names the job's master hooks.
func (c *Core) hooks() string { return strings.Join(c.cfg.Graph.MasterHooks, ", ") }
