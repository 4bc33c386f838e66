package retention

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// ErrLost: a job has completed a checkpoint, and neither that one nor a newer one is there.
var ErrLost = errors.New("the latest checkpoint of the job is not there")

// Recovery is what the next job master finds of a job's checkpoints.
type Recovery struct {
	Latest     checkpoint.ID   // that the job goes on from; 0: it has none of its own
	Older      []checkpoint.ID // ascending; they are kept until newer ones take their place
	Unfinished []checkpoint.ID // ascending; nobody will complete them
	LastID     checkpoint.ID   // no id up to it may be used again
}

// Recover chooses the checkpoint that a job goes on from, by the files in its directory. A checkpoint is completed when its metadata is there,
// and one that was not to become the latest is withdrawn before anything else happens; so the newest is the latest, and no record of it is
// needed. Reserved is the highest id that may have been used, completed a checkpoint that was completed; 0: none was.
func Recover(id job.ID, files []string, reserved, completed checkpoint.ID) (Recovery, error) {
	whole, unfinished := inJobDir(id, files)
	out := Recovery{Unfinished: unfinished, LastID: reserved}
	for _, n := range slices.Concat(whole, unfinished) {
		out.LastID = max(out.LastID, n)
	}
	if len(whole) == 0 || whole[len(whole)-1] < completed {
		if completed > 0 {
			return Recovery{}, ErrLost
		}
		return out, nil
	}
	last := len(whole) - 1
	out.Latest, out.Older = whole[last], whole[:last]
	return out, nil
}

// Leftovers are the checkpoints to delete after a job that has ended, by the files in its directory: the unfinished ones, and the others too if
// none is to be kept.
func Leftovers(id job.ID, files []string, keep bool) []checkpoint.ID {
	whole, unfinished := inJobDir(id, files)
	if keep {
		return unfinished
	}
	return slices.Concat(whole, unfinished)
}

// inJobDir finds the checkpoints in a job's directory, ascending. Without metadata one is unfinished.
func inJobDir(id job.ID, files []string) (whole, unfinished []checkpoint.ID) {
	found := map[checkpoint.ID]bool{}
	for _, file := range files {
		dir := strings.Join(strings.SplitN(file, "/", 3)[:min(2, strings.Count(file, "/")+1)], "/")
		if owner, n, ok := checkpoint.ParseDir(dir); ok && owner == id {
			found[n] = found[n] || file == path.Join(dir, checkpoint.MetadataFile)
		}
	}
	for n, has := range found {
		if has {
			whole = append(whole, n)
		} else {
			unfinished = append(unfinished, n)
		}
	}
	slices.Sort(whole)
	slices.Sort(unfinished)
	return whole, unfinished
}
