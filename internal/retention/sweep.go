package retention

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// StoredKind tells what is found in a checkpoint directory.
type StoredKind int

// The kinds.
const (
	StoredFile     StoredKind = iota + 1
	UnfinishedFile            // that a writer has not published
	EmptyDir
)

// StoredItem is something that is found in a checkpoint directory.
type StoredItem struct {
	Path string // relative to the checkpoint directory
	Kind StoredKind
	Age  time.Duration // since it was last changed
}

// Activity is what a running job may still write, and what that may refer to.
type Activity struct {
	// Lowest is the lowest id of a checkpoint that may be pending or FINALIZING; 0: nothing is known of the job, all of it stays.
	Lowest checkpoint.ID
	// Bases are the completed checkpoints whose shared files one of those may refer to, or one that is triggered from now on.
	Bases []checkpoint.ID
}

// SweepFacts are what a sweep decides on. The jobs must be looked at before the items are listed, and the items before metadata is read: then what
// is listed and belongs to no metadata belongs to none of a checkpoint that completes meanwhile.
type SweepFacts struct {
	Items []StoredItem
	// Metadata by its directory; nil: it is there but cannot be read, so that nothing is known of the files beside it.
	Metadata map[string]*checkpoint.Metadata
	// Live are the jobs that run.
	Live map[job.ID]Activity
	// SafeAge is how old an item must be at least.
	SafeAge time.Duration
}

// Orphans are the items that may be deleted, in order: what no metadata refers to, that is old enough, and that no running job is about to
// refer to. Metadata is never among them, nor anything whose name does not come from here. See MustBeGone.
func Orphans(f SweepFacts) []string {
	referred, unclear := map[string]bool{}, map[string]bool{}
	for dir, md := range f.Metadata {
		if md == nil {
			unclear[path.Dir(dir)] = true
			continue
		}
		for _, name := range md.Files() {
			referred[path.Join(dir, name)] = true
		}
		for _, name := range md.SharedFiles() {
			referred[path.Join(path.Dir(dir), checkpoint.SharedPath(name))] = true
		}
	}
	var out []string
	for _, item := range f.Items {
		if item.Age < f.SafeAge || referred[item.Path] {
			continue
		}
		if j, name, shared := checkpoint.ParseSharedPath(item.Path); shared && item.Kind != EmptyDir {
			if f.isSharedOrphan(j, name, item.Kind) && !unclear[checkpoint.JobDir(j)] {
				out = append(out, item.Path)
			}
		} else if f.isOrphan(item) {
			out = append(out, item.Path)
		}
	}
	slices.Sort(out)
	return out
}

// MustBeGone is the metadata that must be gone for certain, durably, before an orphan is deleted; empty: none. A directory without metadata may be what
// a deletion has left that failed after its first step: then a crash could bring the metadata back, which refers to the orphan.
func (f *SweepFacts) MustBeGone(orphan string) string {
	if j, name, shared := checkpoint.ParseSharedPath(orphan); shared {
		n, ok := checkpoint.ParseSharedFile(name)
		if dir := checkpoint.Dir(j, n.ID); ok && f.Metadata[dir] == nil {
			return path.Join(dir, checkpoint.MetadataFile)
		}
		return ""
	}
	dir, name := path.Split(orphan)
	dir = strings.TrimSuffix(dir, "/")
	if !isStateFile(name) || f.Metadata[dir] != nil {
		return ""
	}
	return path.Join(dir, checkpoint.MetadataFile)
}

// isStateFile reports whether a task of ours gave this name to a file in a checkpoint's directory.
func isStateFile(name string) bool {
	_, native := checkpoint.ParseSharedFile(name)
	return native || checkpoint.IsStateFile(name)
}

// isSharedOrphan decides on a file of a job's shared directory that no metadata refers to. What a running job uploads is above its lowest pending
// checkpoint. A checkpoint that completes while the sweep looks around may refer to older files too, but to none that its base did not: so
// metadata must have been read of every base that there may be.
func (f *SweepFacts) isSharedOrphan(j job.ID, name string, kind StoredKind) bool {
	a, live := f.Live[j]
	if !live && kind == UnfinishedFile {
		return true
	}
	n, ours := checkpoint.ParseSharedFile(name)
	if !ours {
		return false
	}
	if !live {
		return true
	}
	for _, base := range a.Bases {
		if f.Metadata[checkpoint.Dir(j, base)] == nil {
			return false
		}
	}
	return n.ID < a.Lowest
}

func (f *SweepFacts) isOrphan(item StoredItem) bool {
	dir, name := item.Path, ""
	if item.Kind != EmptyDir {
		dir, name = path.Split(item.Path)
		dir = strings.TrimSuffix(dir, "/")
	}
	if f.mayBePending(dir) {
		return false
	}
	if item.Kind == UnfinishedFile {
		return true
	}
	if j, isShared := checkpoint.ParseSharedDir(dir); isShared && item.Kind == EmptyDir {
		_, live := f.Live[j]
		return !live
	}
	if _, _, chk := checkpoint.ParseDir(dir); !chk && !checkpoint.IsSavepointDir(path.Base(dir)) {
		return false
	}
	md, completed := f.Metadata[dir]
	if completed && md == nil {
		return false
	}
	if item.Kind == EmptyDir {
		return !completed
	}
	return isStateFile(name)
}

// mayBePending reports whether a running job may be writing into dir.
func (f *SweepFacts) mayBePending(dir string) bool {
	if j, id, ok := checkpoint.ParseDir(dir); ok {
		a, live := f.Live[j]
		return live && id >= a.Lowest
	}
	for j := range f.Live {
		if strings.HasPrefix(path.Base(dir), checkpoint.SavepointDir(j, "")) {
			return true
		}
	}
	return false
}
