package coordinator_test

import (
	"fmt"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
	"github.com/weirstream/weir/internal/job"
)

// sharing is what there is of shared files around a world: in the storage, in metadata, and on the records of tasks.
type sharing struct {
	there    map[string]bool
	referred map[checkpoint.ID][]string // by metadata that was written, or may have been
	base     map[checkpoint.ID]checkpoint.ID
	record   map[checkpoint.ID]map[job.AttemptID][]string
	kept     map[checkpoint.ID][]string // files of acks that were kept
	failed   map[string]bool            // could not be deleted
	uploads  int
	removed  int
}

func newSharing() sharing {
	return sharing{
		there: map[string]bool{}, referred: map[checkpoint.ID][]string{}, base: map[checkpoint.ID]checkpoint.ID{},
		record: map[checkpoint.ID]map[job.AttemptID][]string{}, kept: map[checkpoint.ID][]string{}, failed: map[string]bool{},
	}
}

// upload is what a task refers to in an ack: some files of its base that it has on record, and new ones.
func (w *world) upload(e SendTrigger, a job.AttemptID) *checkpoint.Keyed {
	s := &w.shared
	if e.Kind == checkpoint.Savepoint {
		return nil
	}
	var files []string
	for _, f := range s.record[e.Base][a] {
		if w.rng.IntN(3) > 0 {
			files = append(files, f)
		}
	}
	for range w.rng.IntN(3) {
		s.uploads++
		name := checkpoint.SharedFileName(a, e.ID, int64(s.uploads))
		s.there[name] = true
		files = append(files, name)
	}
	if s.record[e.ID] == nil {
		s.record[e.ID] = map[job.AttemptID][]string{}
	}
	s.base[e.ID], s.record[e.ID][a] = e.Base, files
	return sharedState(a, files)
}

// isNew reports whether a file was uploaded for a checkpoint.
func isNew(f string, id checkpoint.ID) bool { return strings.Contains(f, fmt.Sprintf("-c%d-n", id)) }

// answered is what an executor does about its files when it hears what has become of its ack.
func (w *world) answered(a Ack, v checkpoint.Verdict) {
	for _, f := range a.State.SharedFiles() {
		switch {
		case v == checkpoint.Kept:
			w.shared.kept[a.ID] = append(w.shared.kept[a.ID], f)
		case isNew(f, a.ID) && (v == checkpoint.TooLate || v == checkpoint.Unknown):
			delete(w.shared.there, f)
		}
	}
}

// removeShared deletes files, all or half of them.
func (w *world) removeShared(e RemoveShared) {
	answer := SharedRemoved{Err: w.maybe("busy")}
	for i, f := range e.Files {
		if answer.Err != "" && i%2 == 1 {
			w.shared.failed[f] = true
			continue
		}
		if !w.shared.there[f] && !w.shared.failed[f] {
			isLate := false // its task has deleted it already, because it heard that its repeated ack was too late
			for id := range w.ended {
				isLate = isLate || isNew(f, id) && w.ended[id] == "aborted"
			}
			if !isLate {
				w.fail("shared file %s is deleted twice", f)
			}
		}
		delete(w.shared.there, f)
		w.shared.removed++
	}
	w.inbox = append(w.inbox, answer)
}

// checkShared: whatever is there to be restored is whole, and so is what a task may refer to.
func (w *world) checkShared() {
	whole := func(id checkpoint.ID, why string) {
		for _, f := range w.shared.referred[id] {
			if !w.shared.there[f] {
				w.fail("I3: shared file %s of checkpoint %d is gone: %s", f, id, why)
			}
		}
	}
	for id := range w.durable {
		if (w.durable[id] || w.doubtful[id]) && !w.deleted[id] {
			whole(id, "its metadata is there")
		}
	}
	for id, base := range w.shared.base {
		if w.ended[id] == "" && base != 0 {
			whole(base, fmt.Sprintf("it is the base of %d", id))
		}
	}
}

// checkSharedLeft: of what was kept nothing is left that nothing refers to, but for what could not be deleted.
func (w *world) checkSharedLeft() {
	referred := map[string]bool{}
	for id, files := range w.shared.kept {
		if !w.deleted[id] { // its deletion has failed, and its metadata may be there
			for _, f := range files {
				referred[f] = true
			}
		}
	}
	for id, files := range w.shared.kept {
		for _, f := range files {
			if isNew(f, id) && w.deleted[id] && w.shared.there[f] && !referred[f] && !w.shared.failed[f] {
				w.fail("I4: shared file %s of checkpoint %d is left behind", f, id)
			}
		}
	}
}
