package taskexecutor

import (
	"slices"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/localstate"
	"github.com/weirstream/weir/internal/storage"
)

// restoreCounts are counted by many tasks: bytes that were read from copies on a disk of the executor and from the storage, and copies that were
// not what they should be.
type restoreCounts struct{ local, storage, damaged atomic.Int64 }

// copied finds the checkpoint of which copies are kept, by its directory: savepoints have none, they are somebody else's.
func (f *stateFiles) copied(dir string) (job.ID, checkpoint.ID, bool) {
	if f.local == nil {
		return "", 0, false
	}
	return checkpoint.ParseDir(dir)
}

// damagedCopy deletes the copy at path, which is not what it should be.
func (f *stateFiles) damagedCopy(j job.ID, id checkpoint.ID, name, path string, err error) {
	f.log.Warn("local copy of state is damaged, reading it from the checkpoint storage", zap.String("file", path), zap.Error(err))
	f.restored.damaged.Add(1)
	f.local.Remove(j, id, name)
}

// onDisk is a storage whose files have a path in the file system of this host.
type onDisk interface {
	// FilePath is where a file is.
	FilePath(name string) string
}

// withCopy lets a file have a copy on a disk of the executor when it is written: the same file by another name if that is possible, else a second one.
func (f *stateFiles) withCopy(w storage.Writer, s Storage, dir, name string) storage.Writer {
	j, id, ok := f.copied(dir)
	if !ok {
		return w
	}
	if d, ok := s.(onDisk); ok && f.local.Links() {
		return &linkedWriter{w, func() { f.local.Keep(j, id, name, d.FilePath(dir+"/"+name)) }}
	}
	return &copiedWriter{w, f.local.Create(j, id, name)}
}

type linkedWriter struct {
	storage.Writer
	keep func()
}

func (w *linkedWriter) Commit() error {
	err := w.Writer.Commit()
	if err == nil {
		w.keep()
	}
	return err
}

type copiedWriter struct {
	storage.Writer
	copy *localstate.Copy
}

func (w *copiedWriter) Write(data []byte) (int, error) {
	w.copy.Write(data)
	return w.Writer.Write(data)
}

func (w *copiedWriter) Commit() error {
	defer w.copy.Abort()
	err := w.Writer.Commit()
	if err == nil {
		w.copy.Commit()
	}
	return err
}

func (w *copiedWriter) Abort() {
	w.copy.Abort()
	w.Writer.Abort()
}

// jobsOf are the jobs of attempts, each once.
func jobsOf(attempts []job.AttemptID) []job.ID {
	var out []job.ID
	for _, a := range attempts {
		if !slices.Contains(out, a.Job) {
			out = append(out, a.Job)
		}
	}
	return out
}

// copiesOf tells the copies of jobs what has become of a checkpoint.
func (e *Executor) copiesOf(attempts []job.AttemptID, tell func(s *localstate.Store, j job.ID)) {
	if e.cfg.Local == nil {
		return
	}
	for _, j := range jobsOf(attempts) {
		tell(e.cfg.Local, j)
	}
}

// keepRestored leaves of the copies of a job those of the checkpoint that tasks start from: no other is pending then.
func (e *Executor) keepRestored(j job.ID, started []*runningTask) {
	if e.cfg.Local == nil || len(started) == 0 {
		return
	}
	var id checkpoint.ID
	if r := started[0].deployment.Restore; r != nil {
		if of, n, ok := checkpoint.ParseDir(r.Dir); ok && of == j {
			id = n
		}
	}
	e.cfg.Local.Restored(j, id)
}

// dropCopies forgets the copies of a job whose last task here has finished.
func (e *Executor) dropCopies(t *runningTask) {
	if e.cfg.Local == nil || t.stateNow() != job.TaskFinished {
		return
	}
	for _, other := range e.snapshot() {
		if other.attempt.Job == t.attempt.Job && !other.stateNow().Terminal() {
			return
		}
	}
	e.cfg.Local.Finished(t.attempt.Job)
}
