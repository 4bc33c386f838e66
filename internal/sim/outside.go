package sim

import (
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// outside is the world that sinks write to: transactions that are prepared durably, and made visible by a commit.
type outside struct {
	s            *Sim
	transactions map[string]*transaction
}

type transaction struct {
	owner     job.AttemptID
	records   []record
	committed bool
}

func newOutside(s *Sim) *outside { return &outside{s: s, transactions: map[string]*transaction{}} }

func (o *outside) prepare(name string, tx *transaction) { o.transactions[name] = tx }

// commit makes a transaction visible; committing twice is allowed, committing what is not there is lost output.
func (o *outside) commit(by job.AttemptID, name string, because checkpoint.ID, dir string) {
	tx := o.transactions[name]
	switch {
	case tx == nil:
		o.s.violate("I5", "%s commits %s for checkpoint %d, and it is not there: output is lost", by, name, because)
	case !tx.committed:
		tx.committed = true
		o.s.note("      %s commits %s: %d records", by, name, len(tx.records))
		o.s.watch.visible(o.s, by, tx.records, because, dir)
	}
}

// recover removes what earlier attempts of the same task have left.
func (o *outside) recover(by job.AttemptID) {
	for _, name := range slices.Sorted(maps.Keys(o.transactions)) {
		tx := o.transactions[name]
		if tx.owner.Job == by.Job && tx.owner.Task == by.Task && tx.owner.Attempt < by.Attempt && !tx.committed {
			delete(o.transactions, name)
		}
	}
}
