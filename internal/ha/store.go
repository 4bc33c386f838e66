package ha

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/dirlock"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
)

// The files of a data directory: lock, epoch, and jobs/<job>/{job,plan,progress,end}.
const (
	lockFile     = "lock"
	epochFile    = "epoch"
	jobsDir      = "jobs"
	jobFile      = "job"
	planFile     = "plan"
	progressFile = "progress"
	endFile      = "end"
)

// Store is an open data directory.
type Store struct {
	files storage.Storage
	dir   string // for messages
	lock  *os.File
	epoch job.LeaderEpoch
	jobs  []Record
}

// epochRecord is the content of the file epoch.
type epochRecord struct{ Epoch job.LeaderEpoch }

// Open makes the data directory if it does not exist, takes its lock, reads all records and begins the next leader epoch.
func Open(ctx context.Context, dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(abs, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w; choose another directory, or let this user write there", dir, err)
	}
	lock, err := dirlock.Acquire(filepath.Join(abs, lockFile))
	if errors.Is(err, dirlock.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is used by another job master; stop it, or give this one a directory of its own", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be locked: %w; choose another directory, or let this user write there", dir, err)
	}
	files, err := storage.NewLocal(abs)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %s: %w", dir, err), lock.Close())
	}
	s, err := OpenIn(ctx, files, dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.lock = lock
	return s, nil
}

// OpenIn reads everything and raises the epoch; dir is for messages. Nothing is changed if a record cannot be read. It takes no lock: who calls it
// sees to it that no other store of these files is in use.
func OpenIn(ctx context.Context, files storage.Storage, dir string) (*Store, error) {
	s := &Store{files: files, dir: dir}
	if err := s.readJobs(ctx); err != nil {
		return nil, err
	}
	var last epochRecord
	found, err := s.read(ctx, epochFile, kindEpoch, &last)
	if err != nil {
		return nil, err
	}
	if !found && len(s.jobs) > 0 {
		return nil, s.broken(epochFile, errors.New("it is missing, although there are jobs"))
	}
	s.epoch = last.Epoch + 1
	if err := s.write(ctx, epochFile, kindEpoch, epochRecord{s.epoch}, storage.Replace); err != nil {
		return nil, err
	}
	return s, nil
}

// Close gives the directory free.
func (s *Store) Close() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// Epoch is the leader epoch that began with this opening. The first is 1.
func (s *Store) Epoch() job.LeaderEpoch { return s.epoch }

// Jobs are the records that were there when the store was opened, in order of submission.
func (s *Store) Jobs() []Record { return s.jobs }

// CreateJob records a job that is new. After an error it may be recorded all the same; see RemoveJob.
func (s *Store) CreateJob(ctx context.Context, j Job) error {
	return s.write(ctx, name(j.ID, jobFile), kindJob, j, storage.CreateOnly)
}

// SetProgress replaces the progress of a job.
func (s *Store) SetProgress(ctx context.Context, id job.ID, p Progress) error {
	return s.write(ctx, name(id, progressFile), kindProgress, p, storage.Replace)
}

// SetPlan replaces the plan of a job.
func (s *Store) SetPlan(ctx context.Context, id job.ID, p Plan) error {
	return s.write(ctx, name(id, planFile), kindPlan, p, storage.Replace)
}

// SetEnd records that a job has ended, or that it is cleaned up after.
func (s *Store) SetEnd(ctx context.Context, id job.ID, e End) error {
	return s.write(ctx, name(id, endFile), kindEnd, e, storage.Replace)
}

// RemoveJob forgets a job that has ended or never began. The end goes last: what is left when only a part was removed is recognised by it.
func (s *Store) RemoveJob(ctx context.Context, id job.ID) error {
	for _, file := range []string{progressFile, planFile, jobFile, endFile} {
		if err := s.files.Remove(ctx, name(id, file)); err != nil {
			return s.broken(name(id, file), err)
		}
	}
	if err := s.files.RemoveAll(ctx, path.Dir(name(id, jobFile))); err != nil {
		return s.broken(path.Dir(name(id, jobFile)), err)
	}
	return nil
}

func name(id job.ID, file string) string { return path.Join(jobsDir, checkpoint.JobDir(id), file) }

func (s *Store) readJobs(ctx context.Context) error {
	infos, err := s.files.List(ctx, jobsDir)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", s.dir, err)
	}
	var dirs []string
	for _, info := range infos {
		switch parent, file := path.Split(info.Path); {
		case strings.Count(info.Path, "/") == 2 && slices.Contains([]string{jobFile, planFile, progressFile, endFile}, file):
			dirs = append(dirs, strings.TrimSuffix(parent, "/"))
		default:
			return s.broken(info.Path, errors.New("no job master has made it"))
		}
	}
	for _, dir := range slices.Compact(dirs) { // List is sorted
		r, err := s.readJob(ctx, dir)
		if err != nil {
			return err
		}
		if r != nil {
			s.jobs = append(s.jobs, *r)
		}
	}
	slices.SortFunc(s.jobs, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Job.Order, b.Job.Order), cmp.Compare(a.Job.ID, b.Job.ID))
	})
	return nil
}

// readJob reads the records of a job; nil: it was being removed, and that is now brought to its end.
func (s *Store) readJob(ctx context.Context, dir string) (*Record, error) {
	var r Record
	var end End
	ended, err := s.read(ctx, path.Join(dir, endFile), kindEnd, &end)
	if err != nil {
		return nil, err
	}
	file := path.Join(dir, jobFile)
	found, err := s.read(ctx, file, kindJob, &r.Job)
	switch {
	case err != nil:
		return nil, err
	case !found && ended:
		if err := s.files.RemoveAll(ctx, dir); err != nil {
			return nil, s.broken(dir, err)
		}
		return nil, nil
	case !found:
		return nil, s.broken(file, errors.New("it is missing"))
	case r.Job.Graph == nil || r.Job.ID == "":
		return nil, s.broken(file, errors.New("it has no id or no graph"))
	case name(r.Job.ID, jobFile) != file:
		return nil, s.broken(file, fmt.Errorf("it is of job %s", r.Job.ID))
	case ended && !end.State.Terminal():
		return nil, s.broken(path.Join(dir, endFile), fmt.Errorf("it says that the job has ended as %s", end.State))
	}
	if err := s.readPlan(ctx, path.Join(dir, planFile), &r); err != nil {
		return nil, err
	}
	if _, err := s.read(ctx, path.Join(dir, progressFile), kindProgress, &r.Progress); err != nil {
		return nil, err
	}
	if ended {
		r.End = &end
	}
	return &r, nil
}

// readPlan puts the plan in the place of what the job was submitted with.
func (s *Store) readPlan(ctx context.Context, file string, r *Record) error {
	var p Plan
	if found, err := s.read(ctx, file, kindPlan, &p); !found || err != nil {
		return err
	}
	if p.Graph == nil {
		return s.broken(file, errors.New("it has no graph"))
	}
	r.Plan = &p
	r.Job.Graph, r.Job.Options.Parallelism, r.Job.Options.OperatorParallelism = p.Graph, p.Parallelism, p.OperatorParallelism
	return nil
}

// read decodes a file; false: there is none.
func (s *Store) read(ctx context.Context, file string, k kind, value any) (bool, error) {
	data, err := s.files.ReadFile(ctx, file, maxRecordBytes)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err == nil {
		err = decode(data, k, value)
	}
	if err != nil {
		return false, s.broken(file, err)
	}
	return true, nil
}

func (s *Store) write(ctx context.Context, file string, k kind, value any, mode storage.Mode) error {
	data, err := encode(k, value)
	if err == nil {
		err = s.files.WriteFile(ctx, file, data, mode)
	}
	if err != nil {
		return fmt.Errorf("data directory %s: record %s: %w", s.dir, file, err)
	}
	return nil
}

// broken names the file and what can be done about it.
func (s *Store) broken(file string, err error) error {
	return fmt.Errorf("data directory %s: record %s: %w; put the file back from a copy, or move the directory of its job away to start without it",
		s.dir, file, err)
}
