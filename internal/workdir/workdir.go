package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/dirlock"
	"github.com/weirstream/weir/internal/job"
)

const (
	lockFile = "lock"
	workDir  = "work"
	localDir = "local"
	// maxDefaults is how many directories of executors that name none are tried: so many of them can run for one user of one host.
	maxDefaults = 64
)

// Dir is the directory of one executor. Its zero value is not usable; see New.
type Dir struct {
	given string // empty: one is chosen

	mu struct {
		sync.Mutex
		path string // absolute; empty: not yet open
		lock *os.File
	}
}

// New returns the directory at path, which is not touched before it is used. An empty path stands for the first one of
// <cache>/weir/taskexecutor/<n> that no other process has, where <cache> is the user's cache directory, or that of temporary files.
func New(path string) *Dir { return &Dir{given: path} }

// Open makes the directory and takes its lock, unless that was done before. Errors name the directory and what to do.
func (d *Dir) Open() error {
	_, err := d.root()
	return err
}

// Close gives the directory free, and removes what is left of tasks. What is in Local stays.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(filepath.Join(d.mu.path, workDir)), d.mu.lock.Close())
	d.mu.path, d.mu.lock = "", nil
	return err
}

// Task makes the directory of an attempt, which is its own until RemoveTask.
func (d *Dir) Task(a job.AttemptID) (string, error) {
	root, err := d.root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, workDir, checkpoint.JobDir(a.Job), checkpoint.AttemptDir(a))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", unusable(root, err)
	}
	return path, nil
}

// RemoveTask removes the directory of an attempt and all that is in it. It is no error if there is none.
func (d *Dir) RemoveTask(a job.AttemptID) error {
	d.mu.Lock()
	root := d.mu.path
	d.mu.Unlock()
	if root == "" {
		return nil
	}
	parent := filepath.Join(root, workDir, checkpoint.JobDir(a.Job))
	if err := os.RemoveAll(filepath.Join(parent, checkpoint.AttemptDir(a))); err != nil {
		return fmt.Errorf("directory of attempt %s: %w; remove %s when the executor is stopped", a, err, parent)
	}
	_ = os.Remove(parent) // that of the job, if this was the last attempt; else it is not empty, which is not wrong
	return nil
}

// Local makes the directory for what outlives attempts and processes. Who uses it knows what is in it and whether it still counts.
func (d *Dir) Local() (string, error) {
	root, err := d.root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, localDir)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", unusable(root, err)
	}
	return path, nil
}

// root is the path of the directory, which is opened first if need be.
func (d *Dir) root() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.path != "" {
		return d.mu.path, nil
	}
	path, lock, err := choose(d.given)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(filepath.Join(path, workDir)); err != nil {
		return "", errors.Join(unusable(path, err), lock.Close())
	}
	d.mu.path, d.mu.lock = path, lock
	return path, nil
}

// choose locks the given directory, or the first free one of those that are nobody's.
func choose(given string) (string, *os.File, error) {
	if given != "" {
		return take(given)
	}
	cache, err := os.UserCacheDir()
	if err != nil { // no home: an account of a service, or a container
		cache = os.TempDir()
	}
	base := filepath.Join(cache, "weir", "taskexecutor")
	for n := range maxDefaults {
		path, lock, err := take(filepath.Join(base, strconv.Itoa(n)))
		if !errors.Is(err, dirlock.ErrLocked) {
			return path, lock, err
		}
	}
	return "", nil, fmt.Errorf("all %d data directories below %s are in use by other task executors: give this one its own with --data-dir", maxDefaults, base)
}

func take(dir string) (string, *os.File, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(path, 0o755)
	}
	if err != nil {
		return "", nil, unusable(dir, err)
	}
	lock, err := dirlock.Acquire(filepath.Join(path, lockFile))
	if errors.Is(err, dirlock.ErrLocked) {
		return "", nil, fmt.Errorf("data directory %s is used by another task executor: %w; stop it, or give this one a directory of its own with --data-dir", dir, err)
	}
	if err != nil {
		return "", nil, unusable(dir, err)
	}
	return path, lock, nil
}

func unusable(dir string, err error) error {
	return fmt.Errorf("data directory %s: %w; choose another one with --data-dir, or let this user write there", dir, err)
}
