package file

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weirstream/weir/stream"
)

// leaseName is the file in an output directory that says whose it is. Readers of the directory leave it out, since it is hidden.
const leaseName = ".weir-lease"

// Lease is a master hook (stream.AddMasterHook) that keeps a directory for one job: while a job holds the lease, another one that asks for it does
// not start, and one that has lost it takes no checkpoint any more. The names of output files keep jobs apart anyway; the lease is against output of two
// jobs where one was meant.
//
// A file in the directory names the job and holds a random token. The job claims the directory before its tasks start, takes it back with each
// restart, and gives it up when it has ended, so that the next one can have it. The token is in every checkpoint: a job that is started from a
// checkpoint of the holder takes the lease over, and the holder, if it still runs, loses it. A job that ended without anybody noticing
// leaves the file behind; the error of the next one names it.
//
// The directory must be an absolute path, and the same one for the job master as for the executors.
func Lease(dir string) func(stream.HookEnv) (stream.MasterHook, error) {
	return func(env stream.HookEnv) (stream.MasterHook, error) {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("the directory %q is relative, and the job master may have another working directory: name it by an absolute path", dir)
		}
		return &lease{dir: dir, env: env}, nil
	}
}

// lease is the lease of one job under one job master.
type lease struct {
	dir  string
	env  stream.HookEnv
	held holding // zero: nothing was claimed yet
}

// holding is the content of the file.
type holding struct {
	JobID       string    `json:"job_id"`
	Job         string    `json:"name"`
	Token       string    `json:"token"`
	LeaderEpoch uint64    `json:"leader_epoch"`
	Since       time.Time `json:"since"`
}

// Reset implements stream.MasterHook.
func (l *lease) Reset(context.Context) error { return l.claim("") }

// Restore implements stream.MasterHook.
func (l *lease) Restore(_ context.Context, _ int64, state []byte) error {
	return l.claim(string(state))
}

// Trigger implements stream.MasterHook: the checkpoint is only taken while the lease is held.
func (l *lease) Trigger(context.Context, int64, time.Time) ([]byte, error) {
	found, err := l.read()
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, fmt.Errorf("the lease of the directory is lost: %s is gone; the job takes it anew when it restarts", l.path())
	case found.JobID != l.held.JobID || found.Token != l.held.Token:
		return nil, fmt.Errorf("the lease of the directory is lost: %w", l.taken(*found))
	}
	return []byte(l.held.Token), nil
}

// JobEnded implements stream.JobEndListener.
func (l *lease) JobEnded(context.Context) error {
	found, err := l.read()
	if err != nil || found == nil || found.JobID != l.env.JobID {
		return err
	}
	if err := os.Remove(l.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("give up the lease: %w", err)
	}
	return syncDir(l.dir)
}

// claimTries is how often a claim begins anew because others claim too.
const claimTries = 3

// claim makes the directory the job's. token is that of a checkpoint which the job starts from: its job's lease may be taken over.
func (l *lease) claim(token string) error {
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("the directory cannot be made: %w", err)
	}
	for range claimTries {
		found, err := l.read()
		if err != nil {
			return err
		}
		mine := holding{JobID: l.env.JobID, Job: l.env.Job, Token: rand.Text(), LeaderEpoch: l.env.LeaderEpoch, Since: time.Now().UTC()}
		switch {
		case found == nil:
		case found.JobID == l.env.JobID && found.LeaderEpoch > l.env.LeaderEpoch:
			return fmt.Errorf("leader epoch %d holds the lease of the job, this is %d: the job master was replaced", found.LeaderEpoch, l.env.LeaderEpoch)
		case found.JobID == l.env.JobID:
			mine.Token, mine.Since = found.Token, found.Since
		case token == "" || found.Token != token:
			return l.taken(*found)
		}
		err = l.write(mine, found == nil)
		if errors.Is(err, fs.ErrExist) {
			continue // somebody was faster: look whose it is
		}
		if err != nil {
			return fmt.Errorf("take the lease: %w", err)
		}
		if now, err := l.read(); err != nil || now == nil || now.Token != mine.Token {
			continue
		}
		l.held = mine
		return nil
	}
	return fmt.Errorf("take the lease: others try to have %s at the same time", l.path())
}

// taken says who has the directory, and what can be done.
func (l *lease) taken(by holding) error {
	return fmt.Errorf("directory %s is leased to job %s (%s) since %s: wait until that job has ended or cancel it, choose another directory, "+
		"or, if the job is gone for ever, delete %s", l.dir, by.JobID, by.Job, by.Since.Format(time.RFC3339), l.path())
}

func (l *lease) path() string { return filepath.Join(l.dir, leaseName) }

// read returns nil when nobody has the lease.
func (l *lease) read() (*holding, error) {
	data, err := os.ReadFile(l.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lease: %w", err)
	}
	var h holding
	if err := json.Unmarshal(data, &h); err != nil || h.JobID == "" || h.Token == "" {
		return nil, fmt.Errorf("the lease in %s cannot be read: if no job writes to the directory, delete it", l.path())
	}
	return &h, nil
}

// write makes the file in one durable step: a new one only if there is none.
func (l *lease) write(h holding, create bool) (err error) {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	draft := l.path() + "-" + l.env.JobID
	if err := os.WriteFile(draft, append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := syncFile(draft); err != nil {
		return err
	}
	if create {
		defer func() { err = errors.Join(err, os.Remove(draft)) }()
		err = os.Link(draft, l.path())
	} else {
		err = os.Rename(draft, l.path())
	}
	if err != nil {
		return err
	}
	return syncDir(l.dir)
}
