package inspecttest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// Facts are what a job master has said of its jobs before it was stopped.
type Facts struct {
	// Live are the jobs that had not ended, with the id of their latest completed checkpoint, or 0. What is not older may be half done.
	Live map[job.ID]checkpoint.ID
	// Ended are the jobs that had: of those that are FINISHED no checkpoint is kept.
	Ended map[job.ID]job.State
	// Discarded are checkpoints of ended jobs that must be gone.
	Discarded map[job.ID][]checkpoint.ID
	// Sweep says that the test has broken something on purpose: a process or a call. Files may be left then, but a sweep must find them.
	Sweep bool
}

// Ask asks a job master for the facts.
func Ask(ctx context.Context, jobs gateway.Jobs) (Facts, error) {
	f := Facts{Live: map[job.ID]checkpoint.ID{}, Ended: map[job.ID]job.State{}, Discarded: map[job.ID][]checkpoint.ID{}}
	all, err := jobs.List(ctx)
	if err != nil {
		return f, err
	}
	for _, j := range all {
		h, err := jobs.Checkpoints(ctx, j.ID)
		if err != nil {
			return f, err
		}
		if !j.State.Terminal() {
			f.Live[j.ID] = 0
		} else {
			f.Ended[j.ID] = j.State
		}
		for _, c := range h.Checkpoints {
			switch {
			case c.Kind != checkpoint.Checkpoint:
			case j.State.Terminal() && (c.Discarded || c.State == gateway.CheckpointAborted):
				f.Discarded[j.ID] = append(f.Discarded[j.ID], c.ID)
			case !j.State.Terminal() && c.State == gateway.CheckpointCompleted:
				f.Live[j.ID] = max(f.Live[j.ID], c.ID)
			}
		}
	}
	return f, nil
}

// AuditDir audits the directory of a storage; it is well when there is none.
func AuditDir(ctx context.Context, location string, f Facts) error {
	files, err := schemes.New().Find(ctx, location)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := Audit(ctx, files, f); err != nil {
		return fmt.Errorf("storage audit of %s: %w", location, err)
	}
	return nil
}

// leftovers is a storage that knows what was not finished; see storage.Local.
type leftovers interface {
	Leftovers(ctx context.Context) ([]storage.Leftover, error)
}

// Audit finds what is wrong in a storage of checkpoints or savepoints, all of it: metadata that cannot be read, state that is missing or damaged, a
// checkpoint that had to be gone, and a file that belongs to nothing.
func Audit(ctx context.Context, files storage.Storage, f Facts) error {
	if f.Sweep {
		if err := f.sweep(ctx, files); err != nil {
			return fmt.Errorf("sweep: %w", err)
		}
	}
	infos, err := files.List(ctx, "")
	if err != nil {
		return err
	}
	a := audit{facts: f, used: map[string]bool{}}
	for _, info := range infos {
		if dir, name := path.Split(info.Path); name == checkpoint.MetadataFile {
			if err := a.checkpoint(ctx, files, strings.TrimSuffix(dir, "/")); err != nil {
				return err
			}
		}
	}
	for _, info := range infos {
		if dir, _ := path.Split(info.Path); !a.used[info.Path] && !a.mayBePending(strings.TrimSuffix(dir, "/")) && !a.mayBeUploaded(info.Path) {
			a.found("%s (%d bytes) belongs to no checkpoint", info.Path, info.Size)
		}
	}
	if local, ok := files.(leftovers); ok {
		list, err := local.Leftovers(ctx)
		if err != nil {
			return err
		}
		a.leftovers(list)
	}
	return errors.Join(a.problems...)
}

// sweep sweeps twice: the directories that the first time leaves empty are for the second.
func (f *Facts) sweep(ctx context.Context, files storage.Storage) error {
	live := func() map[job.ID]retention.Activity {
		out := map[job.ID]retention.Activity{}
		for j, latest := range f.Live {
			out[j] = retention.Activity{Lowest: latest}
			if latest > 0 {
				out[j] = retention.Activity{Lowest: latest, Bases: []checkpoint.ID{latest}}
			}
		}
		return out
	}
	for range 2 {
		if _, err := inspect.Sweep(ctx, files, inspect.Sweeping{Now: time.Now().Add(time.Hour), Live: live}); err != nil {
			return err
		}
	}
	return nil
}

type audit struct {
	facts    Facts
	used     map[string]bool // files
	problems []error
}

func (a *audit) found(format string, args ...any) {
	a.problems = append(a.problems, fmt.Errorf(format, args...))
}

// checkpoint reads all of a completed checkpoint and notes its files.
func (a *audit) checkpoint(ctx context.Context, files storage.Storage, dir string) error {
	a.used[path.Join(dir, checkpoint.MetadataFile)] = true
	s, err := inspect.ReadFrom(ctx, files, dir)
	if err != nil {
		a.found("%w", err)
		return nil
	}
	for _, name := range s.Metadata.Files() {
		a.used[path.Join(dir, name)] = true
	}
	for _, name := range s.Metadata.SharedFiles() {
		a.used[path.Join(path.Dir(dir), checkpoint.SharedPath(name))] = true
	}
	v, err := s.Verify(ctx)
	if err != nil {
		return err
	}
	for _, d := range v.Damage {
		a.found("%s: %s", dir, d)
	}
	if j, id, ok := checkpoint.ParseDir(dir); ok {
		if a.facts.Ended[j] == job.Finished {
			a.found("%s is kept, although its job is FINISHED", dir)
		}
		if slices.Contains(a.facts.Discarded[j], id) {
			a.found("%s is there, although it was discarded", dir)
		}
	}
	return nil
}

// leftovers reports files that nobody has finished, and directories of checkpoints in which nothing is.
func (a *audit) leftovers(list []storage.Leftover) {
	for _, o := range list {
		dir := o.Path
		if !o.Dir {
			dir = path.Dir(o.Path)
		}
		_, _, chk := checkpoint.ParseDir(dir)
		if j, shared := checkpoint.ParseSharedDir(dir); shared {
			if _, live := a.facts.Live[j]; live {
				continue
			}
			a.found("%s is left behind", o.Path)
			continue
		}
		if a.mayBePending(dir) || o.Dir && !chk && !checkpoint.IsSavepointDir(path.Base(dir)) {
			continue
		}
		a.found("%s is left behind", o.Path)
	}
}

// mayBeUploaded reports whether a shared file is of a checkpoint that a job that had not ended may have been at work on.
func (a *audit) mayBeUploaded(file string) bool {
	j, name, shared := checkpoint.ParseSharedPath(file)
	n, ours := checkpoint.ParseSharedFile(name)
	latest, live := a.facts.Live[j]
	return shared && ours && live && n.ID >= latest
}

// mayBePending reports whether a job that had not ended may have been at work in dir.
func (a *audit) mayBePending(dir string) bool {
	if j, id, ok := checkpoint.ParseDir(dir); ok {
		latest, live := a.facts.Live[j]
		return live && id >= latest
	}
	for j := range a.facts.Live {
		if strings.HasPrefix(path.Base(dir), checkpoint.SavepointDir(j, "")) {
			return true
		}
	}
	return false
}
