package coordinator

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// store holds the completed checkpoints that a restore may use.
type store struct {
	// borrowed is a restored savepoint or a checkpoint of another job: used until there is one of our own, never deleted unless it is claimed.
	// A claimed one counts as the oldest of the retained ones until it falls out.
	borrowed *checkpoint.Completed
	older    []*checkpoint.Completed // of earlier leaders, oldest first; see Config.Older
	retained []*checkpoint.Completed // our own, ascending by id
	doubts   []*doubt                // aborted ones that may be durable, ascending by id
	stop     *checkpoint.Completed   // the savepoint that has stopped the job; nil: none. What it promised is being committed, so nothing else is restored
	lastDone time.Time               // of anything, savepoints included; min pause runs from here
}

func newStore(id job.ID, restored *checkpoint.Completed) store {
	if restored.Stopped {
		return store{stop: restored}
	}
	if restored.Metadata.Job == id && restored.Metadata.Kind == checkpoint.Checkpoint {
		return store{retained: []*checkpoint.Completed{restored}}
	}
	return store{borrowed: restored}
}

// add puts a checkpoint in and returns those that fall out: added first, removed after.
func (s *store) add(done *checkpoint.Completed, keep int) []*checkpoint.Completed {
	at, _ := slices.BinarySearchFunc(s.retained, done, func(a, b *checkpoint.Completed) int {
		return cmp.Compare(a.Metadata.ID, b.Metadata.ID)
	})
	s.retained = slices.Insert(s.retained, at, done)
	var subsumed []*checkpoint.Completed
	if len(s.older)+len(s.retained) >= max(keep, 1) {
		subsumed = s.takeClaimed()
	}
	take := func(from *[]*checkpoint.Completed) {
		drop := min(len(*from), max(len(s.older)+len(s.retained)-max(keep, 1), 0))
		subsumed = append(subsumed, (*from)[:drop]...)
		*from = slices.Delete(*from, 0, drop)
	}
	take(&s.older)
	take(&s.retained)
	return subsumed
}

func (s *store) clear() []*checkpoint.Completed {
	all := slices.Concat(s.takeClaimed(), s.older, s.retained)
	s.older, s.retained = nil, nil
	return all
}

// takeClaimed takes the checkpoint out that the job was started from, if the job owns it.
func (s *store) takeClaimed() []*checkpoint.Completed {
	if s.borrowed == nil || !s.borrowed.Claimed {
		return nil
	}
	claimed := s.borrowed
	s.borrowed = nil
	return []*checkpoint.Completed{claimed}
}

func (s *store) latest() *checkpoint.Completed {
	if s.stop != nil {
		return s.stop
	}
	if n := len(s.retained); n > 0 {
		return s.retained[n-1]
	}
	return s.borrowed
}

func (s *store) latestID() checkpoint.ID {
	if l := s.latest(); l != nil {
		return l.Metadata.ID
	}
	return 0
}

// Latest is the checkpoint that a restore uses: the savepoint that has stopped the job; else the newest completed one; before the first the one
// that the job was started from; nil for none. It is an answer only while Settled.
func (c *Core) Latest() *checkpoint.Completed { return c.store.latest() }

// Retained lists the job's own completed checkpoints that are kept, newest last.
func (c *Core) Retained() []*checkpoint.Completed { return slices.Clone(c.store.retained) }

// Older lists what is kept of Config.Older.
func (c *Core) Older() []*checkpoint.Completed { return slices.Clone(c.store.older) }

// Settled reports that no checkpoint is FINALIZING, and that none whose outcome nobody knows is still to be deleted. The loop waits for it
// before it restores: metadata that is being written may be durable already, and then it, not Latest, is what the tasks must start from.
func (c *Core) Settled() bool {
	return len(c.store.doubts) == 0 && !slices.ContainsFunc(c.pending, func(p *pending) bool { return p.phase == finalizing })
}
