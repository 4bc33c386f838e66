package retention

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// SharedLeft are the files of a job's shared directory that nobody refers to or will: by the files in the job's directory and the metadata of all its
// checkpoints that are kept, nil if one cannot be read; then nothing is known, and all stay. upTo is the highest checkpoint id that may have been used: what is
// above it somebody uploads. The names are those in the shared directory.
//
// settle are checkpoints that the files were uploaded for and that are not kept: they must be deleted for sure before the files are, so that metadata of
// them does not come back, after a crash, that refers to what is gone.
func SharedLeft(id job.ID, files []string, kept []*checkpoint.Metadata, upTo checkpoint.ID) (names []string, settle []checkpoint.ID) {
	referred, there := map[string]bool{}, map[checkpoint.ID]bool{}
	for _, md := range kept {
		if md == nil {
			return nil, nil
		}
		there[md.ID] = true
		for _, f := range md.SharedFiles() {
			referred[f] = true
		}
	}
	for _, file := range files {
		name, shared := strings.CutPrefix(file, checkpoint.SharedDir(id)+"/")
		n, ours := checkpoint.ParseSharedFile(name)
		if !shared || !ours || n.ID > upTo || referred[name] {
			continue
		}
		names = append(names, name)
		if !there[n.ID] {
			settle = append(settle, n.ID)
		}
	}
	slices.Sort(names)
	slices.SortFunc(settle, cmp.Compare)
	return names, slices.Compact(settle)
}
