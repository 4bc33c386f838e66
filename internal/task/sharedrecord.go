package task

import (
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
)

// maxRecords is how many checkpoints a SharedRecord knows the files of. A task that has forgotten its base writes everything anew.
const maxRecords = 16

// SharedRecord is what a task itself knows of shared files: those that each checkpoint of this attempt refers to, because the attempt has uploaded them
// or has found them in the checkpoint's own base, and those that it was restored from. Only what is in here is ever referred to again, and only of the
// checkpoint that the coordinator names as the base; a message that was lost or came late changes nothing. The zero record knows nothing.
type SharedRecord struct {
	known map[checkpoint.ID]map[string]map[string]checkpoint.SharedFile // by checkpoint, operator and the backend's name
}

// Restored notes what the attempt starts from. The names of the files say what is in them only if an operator has them from one place, and all of that; else
// its backend gives new names.
func (r *SharedRecord) Restored(id checkpoint.ID, operators []checkpoint.OperatorRestore) {
	for _, op := range operators {
		if len(op.Keyed) == 1 && op.Keyed[0].IsNative() && !op.Keyed[0].Clipped {
			r.Refers(id, op.Operator, op.Keyed[0].Files)
		}
	}
}

// Refers notes that what an operator has in a checkpoint is in these files. Those that are not shared are of no use to others.
func (r *SharedRecord) Refers(id checkpoint.ID, operator string, files []checkpoint.SharedFile) {
	if r.known == nil {
		r.known = map[checkpoint.ID]map[string]map[string]checkpoint.SharedFile{}
	}
	if r.known[id] == nil {
		r.known[id] = map[string]map[string]checkpoint.SharedFile{}
	}
	byName := make(map[string]checkpoint.SharedFile, len(files))
	for _, f := range files {
		if _, shared := f.Shared(); shared {
			byName[f.Name] = f
		}
	}
	r.known[id][operator] = byName
	if len(r.known) > maxRecords {
		delete(r.known, slices.Min(slices.Collect(maps.Keys(r.known))))
	}
}

// Find gives the file of the base in which an operator's file is stored already.
func (r *SharedRecord) Find(base checkpoint.ID, operator, name string, size int64) (checkpoint.SharedFile, bool) {
	f, ok := r.known[base][operator][name]
	return f, ok && f.Size == size
}

// Based forgets what is older than a base: no later checkpoint has an older one.
func (r *SharedRecord) Based(base checkpoint.ID) {
	maps.DeleteFunc(r.known, func(id checkpoint.ID, _ map[string]map[string]checkpoint.SharedFile) bool { return id < base })
}

// Over forgets a checkpoint that will not complete, so that it is nobody's base.
func (r *SharedRecord) Over(id checkpoint.ID) { delete(r.known, id) }

// Len is how many checkpoints are known.
func (r *SharedRecord) Len() int { return len(r.known) }
