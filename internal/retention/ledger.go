package retention

import (
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
)

// MaxUndeleted is how many checkpoints whose deletion has failed a Ledger remembers: their metadata may be there, or come back after a crash.
const MaxUndeleted = 100

// Ledger says which shared files of a job's checkpoints are still referred to, and so which may be deleted when one of them is gone. It knows them from
// metadata and acks alone: what was sent, lost, repeated or late changes nothing. A file is held while any of these refers to it:
//
//   - a checkpoint that is pending, by an ack that was kept;
//   - a completed one, from then until its metadata is gone for sure, be it retained, in doubt, or being deleted;
//   - a completed one, deleted or not, that is the base of a pending one: a task may refer to any of its files in an ack to come.
//
// The zero Ledger holds nothing.
type Ledger struct {
	held      map[checkpoint.ID]*holding
	undeleted []checkpoint.ID // oldest first
}

// holding is what one checkpoint refers to.
type holding struct {
	files map[string]struct{}
	gone  bool          // it holds its files for others only, whose base it is
	keep  bool          // nobody knows whether it is gone: its files are left to a sweep
	base  checkpoint.ID // while it is pending; 0: none
}

// Begin notes a pending checkpoint and its base, 0 for none.
func (l *Ledger) Begin(id, base checkpoint.ID) { l.at(id).base = base }

// Hold notes files that a checkpoint refers to.
func (l *Ledger) Hold(id checkpoint.ID, files []string) {
	h := l.at(id)
	if len(files) > 0 && h.files == nil {
		h.files = make(map[string]struct{}, len(files))
	}
	for _, f := range files {
		h.files[f] = struct{}{}
	}
}

// Decided notes that a checkpoint is pending no longer, so that it needs no base. It returns the files that nothing refers to any more, sorted.
func (l *Ledger) Decided(id checkpoint.ID) []string {
	h := l.held[id]
	if h == nil || h.base == 0 {
		return nil
	}
	base := h.base
	h.base = 0
	if b := l.held[base]; b != nil && b.gone {
		return l.release(base)
	}
	return nil
}

// Gone notes that a checkpoint is not pending, and that its metadata is gone for sure. It returns the files that nothing refers to any more, sorted.
func (l *Ledger) Gone(id checkpoint.ID) []string {
	h := l.held[id]
	if h == nil {
		return nil
	}
	freed := l.Decided(id)
	h.gone = true
	freed = append(freed, l.release(id)...)
	slices.Sort(freed)
	return freed
}

// NotGone notes that the metadata of a checkpoint could not be deleted. What it refers to is held on; of those that are too many the oldest is forgotten, which
// deletes nothing.
func (l *Ledger) NotGone(id checkpoint.ID) {
	if l.held[id] == nil || slices.Contains(l.undeleted, id) {
		return
	}
	l.undeleted = append(l.undeleted, id)
	if len(l.undeleted) > MaxUndeleted {
		oldest := l.undeleted[0]
		l.undeleted = l.undeleted[1:]
		l.held[oldest].gone, l.held[oldest].keep = true, true
		l.release(oldest)
	}
}

// Held is the number of checkpoints that hold files, or may come to.
func (l *Ledger) Held() int { return len(l.held) }

func (l *Ledger) at(id checkpoint.ID) *holding {
	if l.held == nil {
		l.held = map[checkpoint.ID]*holding{}
	}
	if l.held[id] == nil {
		l.held[id] = &holding{}
	}
	return l.held[id]
}

// release lets go what a checkpoint that is gone holds, unless it is the base of a pending one.
func (l *Ledger) release(id checkpoint.ID) []string {
	if l.isBase(id) {
		return nil
	}
	files, keep := l.held[id].files, l.held[id].keep
	delete(l.held, id)
	l.undeleted = slices.DeleteFunc(l.undeleted, func(other checkpoint.ID) bool { return other == id })
	if keep {
		return nil
	}
	for _, other := range l.held { // few: what is retained and what is pending
		if len(other.files) == 0 {
			continue
		}
		maps.DeleteFunc(files, func(f string, _ struct{}) bool {
			_, referred := other.files[f]
			return referred
		})
	}
	return slices.Sorted(maps.Keys(files))
}

func (l *Ledger) isBase(id checkpoint.ID) bool {
	for _, h := range l.held {
		if h.base == id && id != 0 {
			return true
		}
	}
	return false
}

// Holds reports whether a checkpoint refers to a file.
func (l *Ledger) Holds(id checkpoint.ID, file string) bool {
	h := l.held[id]
	if h == nil {
		return false
	}
	_, ok := h.files[file]
	return ok
}
