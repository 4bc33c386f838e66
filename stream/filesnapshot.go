package stream

import (
	"context"

	"github.com/weirstream/weir/internal/job"
)

// FileSnapshot is the KeyedSnapshot of a backend that keeps its state in immutable files: what a checkpoint already has of them is not written again.
// The canonical form of KeyedSnapshot is for savepoints, and for whoever has no place to share files.
type FileSnapshot interface {
	KeyedSnapshot
	// Files gives the state in the backend's own form. It runs beside the task, on the goroutine that uses the snapshot. The files stay as they
	// are until Release.
	Files(ctx context.Context) ([]SnapshotFile, error)
}

// SnapshotFile is a file of a backend. Two files with the same Name in snapshots of one operator have the same content, in one attempt, and in the attempt
// and the part that it was restored from, if that was one and whole: so the second need not be written.
type SnapshotFile struct {
	Name string // one element of a path, at most 255 bytes
	Path string // on the local disk
	Size int64
}

// FileStateful is an operator whose snapshots may be FileSnapshots.
type FileStateful interface {
	KeyedStateful
	// Backend names the form of the files: only a FileStateful of the same Backend can restore them.
	Backend() string
	// RestoreFiles gives back state in the backend's own form, in all its parts at once. It is called before Open, instead of RestoreGroup.
	RestoreFiles(ctx context.Context, parts []RestoredFiles) error
}

// RestoredFiles is the state of one old subtask, or that part of it which is ours.
type RestoredFiles struct {
	Groups  job.KeyGroupRange // that are ours; what the files hold of others must be left out
	Whole   bool              // the files hold no other groups
	Written []StateSchema     // as which it was written
	// Files are on the local disk. They may be linked or copied, but not changed; they are gone after RestoreFiles has returned.
	Files []SnapshotFile
}
