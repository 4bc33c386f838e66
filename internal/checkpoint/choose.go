package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/location"
)

// ErrNoCheckpoint: no completed checkpoint is at a path, nor below it.
var ErrNoCheckpoint = errors.New("no completed checkpoint or savepoint is there")

// Choice is the checkpoint that a job starts from.
type Choice struct {
	Dir      string
	Metadata *Metadata
	Skipped  []error // why newer ones were not taken, newest first; only with fallback
}

// Choose finds the checkpoint that is meant by dir: the one in it, or the newest completed one below it, when dir is the directory of a job.
// One that cannot be read is an error that names it: nothing older is ever taken in silence. With fallback the next older one is tried.
//
// files lists the files below a directory, with paths relative to it; read reads and checks the checkpoint in a directory.
func Choose(dir string, fallback bool, files func(dir string) ([]string, error), read func(dir string) (*Metadata, error)) (Choice, error) {
	candidates, err := candidatesAt(dir, fallback, files)
	if err != nil {
		return Choice{}, err
	}
	var out Choice
	for _, c := range candidates {
		md, err := read(c)
		if err == nil {
			out.Dir, out.Metadata = c, md
			return out, nil
		}
		err = fmt.Errorf("checkpoint %s cannot be used: %w", c, err)
		if !fallback {
			return Choice{}, fmt.Errorf("%w; --fallback goes to the next older one", err)
		}
		out.Skipped = append(out.Skipped, err)
	}
	return Choice{}, errors.Join(append(out.Skipped, errors.New("there is no older one"))...)
}

// candidatesAt lists the directories to try, in order.
func candidatesAt(dir string, fallback bool, files func(dir string) ([]string, error)) ([]string, error) {
	names, err := files(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	if slices.Contains(names, MetadataFile) {
		out = append(out, dir)
	} else {
		for _, sub := range NewestFirst(names) {
			out = append(out, location.Join(dir, sub))
		}
	}
	parent, name := location.Split(dir)
	if id, ok := chkID(name); ok && fallback {
		older, err := files(parent)
		if err != nil {
			return nil, err
		}
		for _, sub := range NewestFirst(older) {
			if other, _ := chkID(sub); other < id {
				out = append(out, location.Join(parent, sub))
			}
		}
	}
	if len(out) == 0 {
		return nil, ErrNoCheckpoint
	}
	return out, nil
}

// NewestFirst finds the completed checkpoints among the files below the directory of a job: the names of the directories in it that hold
// metadata, the newest first.
func NewestFirst(files []string) []string {
	var out []string
	for _, name := range files {
		dir, file := path.Split(name)
		dir = strings.TrimSuffix(dir, "/")
		if _, ok := chkID(dir); ok && file == MetadataFile {
			out = append(out, dir)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		x, _ := chkID(a)
		y, _ := chkID(b)
		return cmp.Compare(y, x)
	})
	return slices.Compact(out)
}

// chkID reads the name of a checkpoint's directory, "chk-<n>".
func chkID(name string) (ID, bool) {
	_, id, ok := ParseDir("j/" + name)
	return id, ok
}

// Files lists the state files that md refers to, relative to its directory and sorted.
func (md *Metadata) Files() []string { return slices.Sorted(maps.Keys(md.FileEnds())) }

// FileEnds gives for each state file that md refers to the number of bytes that it must have at least.
func (md *Metadata) FileEnds() map[string]int64 {
	out := map[string]int64{}
	add := func(h Handle) {
		if !h.IsInline() {
			out[h.Path] = max(out[h.Path], h.Offset+h.Length)
		}
	}
	for i := range md.Vertices {
		for n := range md.Vertices[i].Subtasks {
			for _, op := range md.Vertices[i].Subtasks[n].Operators {
				for h := range op.Handles() {
					add(h)
				}
				if op.Keyed != nil {
					for _, f := range op.Keyed.Files {
						if _, shared := f.Shared(); !shared {
							out[f.Path] = max(out[f.Path], f.Size)
						}
					}
				}
			}
		}
	}
	return out
}

// CheckFiles reports a state file that md refers to and that is not among the files of its directory.
func (md *Metadata) CheckFiles(files []string) error {
	there := map[string]bool{}
	for _, name := range files {
		there[name] = true
	}
	for _, name := range md.Files() {
		if !there[name] {
			return fmt.Errorf("state file %s is missing", name)
		}
	}
	return nil
}
