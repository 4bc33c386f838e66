package localstate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

const (
	// SafeAge is how long the copies of a job stay that has not taken a checkpoint here.
	SafeAge = 24 * time.Hour
	// MaxJobs is how many jobs that do not run here may have copies; those of the oldest go first.
	MaxJobs = 32
	// sweepPause is the least time between two sweeps, which are made when a job comes that was not here before.
	sweepPause = time.Hour
	// tempPrefix is in front of the names of copies that are not whole. No file in a storage has such a name.
	tempPrefix = ".tmp~"
)

// Store is the copies of one executor.
type Store struct {
	dir    func() (string, error) // makes the directory
	log    *zap.Logger
	errors atomic.Int64

	mu struct {
		sync.Mutex
		root string // empty: not yet opened
		jobs map[job.ID]*copies
		temp int   // counts the copies in the making
		far  bool  // a file of the storage could not be linked
		off  error // why the directory cannot be used at all

		swept time.Time
	}
}

// New returns the store in a directory, which is asked for when it is needed first. What is there from processes before is swept then.
func New(log *zap.Logger, dir func() (string, error)) *Store {
	s := &Store{dir: dir, log: log}
	s.mu.jobs = map[job.ID]*copies{}
	return s
}

// Errors is how many copies could not be made.
func (s *Store) Errors() int64 { return s.errors.Load() }

// errOff: there is no directory, which was said once.
var errOff = errors.New("no local copies are kept")

func (s *Store) failed(what string, err error) {
	s.errors.Add(1)
	if errors.Is(err, errOff) {
		return
	}
	s.log.Warn("local copy of state: "+what+"; the checkpoint storage has it all the same", zap.Error(err))
}

// open is called with the lock held.
func (s *Store) open() (string, error) {
	if s.mu.root != "" {
		return s.mu.root, nil
	}
	if s.mu.off != nil {
		return "", s.mu.off
	}
	root, err := s.dir()
	if err != nil {
		s.mu.off = fmt.Errorf("%w: %w", errOff, err)
		s.log.Warn("no local copies of state are kept; name a directory with --data-dir, or leave them out with --local-recovery=false", zap.Error(err))
		return "", s.mu.off
	}
	s.mu.root = root
	s.sweep(true)
	return root, nil
}

// job finds what there is of a job, on the disk too. It is called with the lock held.
func (s *Store) job(j job.ID) (*copies, error) {
	if c := s.mu.jobs[j]; c != nil {
		return c, nil
	}
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	if time.Since(s.mu.swept) > sweepPause {
		s.sweep(false)
	}
	c := &copies{}
	entries, err := os.ReadDir(filepath.Join(root, checkpoint.JobDir(j)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if _, id, ok := checkpoint.ParseDir(checkpoint.JobDir(j) + "/" + e.Name()); ok {
			s.remove(root, j, c.add(id)) // none are added meanwhile: nobody has heard of the job before
		}
	}
	s.mu.jobs[j] = c
	return c, nil
}

// remove deletes the copies of checkpoints that are not wanted any more.
func (s *Store) remove(root string, j job.ID, ids []checkpoint.ID) {
	for _, id := range ids {
		if err := os.RemoveAll(filepath.Join(root, filepath.FromSlash(checkpoint.Dir(j, id)))); err != nil {
			s.failed("left behind", err)
		}
	}
}

// decide lets the copies of a job change. An executor that never had copies needs no directory to forget some.
func (s *Store) decide(j job.ID, change func(c *copies) []checkpoint.ID) {
	s.mu.Lock()
	if s.mu.root == "" {
		s.mu.Unlock()
		return
	}
	c, err := s.job(j)
	var gone []checkpoint.ID
	if err == nil {
		gone = change(c)
	}
	root := s.mu.root
	s.mu.Unlock()
	if err != nil {
		s.failed("the directory cannot be read", err)
	}
	s.remove(root, j, gone)
}

// Completed says that a checkpoint has completed. Copies of older ones are deleted.
func (s *Store) Completed(j job.ID, id checkpoint.ID) {
	s.decide(j, func(c *copies) []checkpoint.ID { return c.complete(id) })
}

// Aborted says that a checkpoint was aborted. Its copies are deleted, and those that still come discarded.
func (s *Store) Aborted(j job.ID, id checkpoint.ID) {
	s.decide(j, func(c *copies) []checkpoint.ID { return c.abort(id) })
}

// Restored says that tasks start from a checkpoint; 0: from another job's, or a savepoint. Copies of all others are deleted.
func (s *Store) Restored(j job.ID, id checkpoint.ID) {
	s.decide(j, func(c *copies) []checkpoint.ID { return c.restored(id) })
}

// Finished says that a job has no more use of its copies.
func (s *Store) Finished(j job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.root != "" {
		s.discard(checkpoint.JobDir(j))
	}
}

// Path is where the copy of a file of a checkpoint is. name is the file's in the storage, relative to the checkpoint's directory.
func (s *Store) Path(j job.ID, id checkpoint.ID, name string) (string, bool) {
	s.mu.Lock()
	root, err := s.open()
	s.mu.Unlock()
	if err != nil {
		return "", false
	}
	file := filePath(root, j, id, name)
	if _, err := os.Stat(file); err != nil {
		return "", false
	}
	return file, true
}

// Remove deletes a copy, because it is damaged or the file is deleted too. It is no error if there is none.
func (s *Store) Remove(j job.ID, id checkpoint.ID, name string) {
	s.mu.Lock()
	root := s.mu.root
	s.mu.Unlock()
	if root == "" {
		return
	}
	if err := os.Remove(filePath(root, j, id, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.failed("left behind", err)
	}
}

// filePath has the name of the file in one element, because one in a directory beside the checkpoint's has a slash.
func filePath(root string, j job.ID, id checkpoint.ID, name string) string {
	return filepath.Join(root, filepath.FromSlash(checkpoint.Dir(j, id)), strings.ReplaceAll(name, "/", "%2F"))
}

// sweep removes copies of jobs that are long gone, and at first those that the process before was making. It is called with the lock held.
func (s *Store) sweep(first bool) {
	s.mu.swept = time.Now()
	running := map[string]bool{}
	for j := range s.mu.jobs {
		running[checkpoint.JobDir(j)] = true
	}
	entries, err := os.ReadDir(s.mu.root)
	if err != nil {
		s.failed("the directory cannot be read", err)
		return
	}
	type found struct {
		name string
		mod  time.Time
	}
	var kept []found
	for _, e := range entries {
		info, err := e.Info()
		temp := strings.HasPrefix(e.Name(), tempPrefix)
		switch {
		case err != nil || temp && !first:
			continue
		case temp || time.Since(info.ModTime()) > SafeAge:
			s.discard(e.Name())
		case !running[e.Name()]:
			kept = append(kept, found{e.Name(), info.ModTime()})
		}
	}
	slices.SortFunc(kept, func(a, b found) int { return b.mod.Compare(a.mod) })
	for _, f := range kept[min(len(kept), MaxJobs):] {
		s.discard(f.name)
	}
}

// discard removes what is in one name of the directory, and what is known of it.
func (s *Store) discard(name string) {
	maps.DeleteFunc(s.mu.jobs, func(j job.ID, _ *copies) bool { return checkpoint.JobDir(j) == name })
	if err := os.RemoveAll(filepath.Join(s.mu.root, name)); err != nil {
		s.failed("left behind", fmt.Errorf("%s: %w", name, err))
	}
}
