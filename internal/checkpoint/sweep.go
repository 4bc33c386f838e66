package checkpoint

import (
	"path"
	"slices"
	"strings"
	"time"

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

// SweepFacts are what a sweep decides on. The jobs must be looked at before the items are listed, and the items before metadata is read: then what
// is listed and belongs to no metadata belongs to none of a checkpoint that completes meanwhile.
type SweepFacts struct {
	Items []StoredItem
	// Metadata by its directory; nil: it is there but cannot be read, so that nothing is known of the files beside it.
	Metadata map[string]*Metadata
	// Live are the jobs that run, with the lowest id of a checkpoint that may be pending or FINALIZING.
	Live map[job.ID]ID
	// SafeAge is how old an item must be at least.
	SafeAge time.Duration
}

// Orphans are the items that may be deleted, in order: what no metadata refers to, that is old enough, and that no running job is about to
// refer to. Metadata is never among them, nor anything whose name does not come from here. See MustBeGone.
func Orphans(f SweepFacts) []string {
	referred := map[string]bool{}
	for dir, md := range f.Metadata {
		if md == nil {
			continue
		}
		for _, name := range md.Files() {
			referred[path.Join(dir, name)] = true
		}
	}
	var out []string
	for _, item := range f.Items {
		if item.Age >= f.SafeAge && !referred[item.Path] && f.isOrphan(item) {
			out = append(out, item.Path)
		}
	}
	slices.Sort(out)
	return out
}

// MustBeGone is the metadata that must be gone for certain, durably, before an orphan is deleted; empty: none. A directory without metadata may be what
// a deletion has left that failed after its first step: then a crash could bring the metadata back, which refers to the orphan.
func (f *SweepFacts) MustBeGone(orphan string) string {
	dir, name := path.Split(orphan)
	dir = strings.TrimSuffix(dir, "/")
	if _, state := ParseStateFile(name); !state || f.Metadata[dir] != nil {
		return ""
	}
	return path.Join(dir, MetadataFile)
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
	if _, _, chk := ParseDir(dir); !chk && !IsSavepointDir(path.Base(dir)) {
		return false
	}
	md, completed := f.Metadata[dir]
	if completed && md == nil {
		return false
	}
	if item.Kind == EmptyDir {
		return !completed
	}
	_, ours := ParseStateFile(name)
	return ours
}

// mayBePending reports whether a running job may be writing into dir.
func (f *SweepFacts) mayBePending(dir string) bool {
	if j, id, ok := ParseDir(dir); ok {
		lowest, live := f.Live[j]
		return live && id >= lowest
	}
	for j := range f.Live {
		if strings.HasPrefix(path.Base(dir), SavepointDir(j, "")) {
			return true
		}
	}
	return false
}
