// Package recovery reads the checkpoint that a job starts from: the one that it was submitted with, or what a job master finds of a job that an earlier
// one has run.
//
// Owns: nothing; it only reads, and makes durable what it has chosen.
//
// Promises: the newest completed checkpoint is never passed over in silence. A job that ever had one never starts without. An error says what can be done.
//
// Goroutines: none.
//
// Not here: what the job master does with it (package jobmaster), which of the files belong together (package checkpoint).
//
// Start at: Read for recoveries, Choose for submissions.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/retention"
)

// Request says of which job, and what is known of it.
type Request struct {
	Archive  *archive.Archive
	Job      job.ID
	Graph    *job.Graph
	Progress ha.Progress
	// Restored is what it was submitted with, its Metadata may be nil; nil: nothing.
	Restored *checkpoint.Completed
	// Fallback: an older checkpoint may be taken when the newest cannot be read.
	Fallback bool
}

// Found is what a job goes on from.
type Found struct {
	Latest     *checkpoint.Completed   // nil: it starts empty
	Older      []*checkpoint.Completed // retained before Latest, ascending by id; their Metadata may be nil
	Unfinished []checkpoint.ID
	Files      []string      // in the job's directory; nil: it goes on from none of the checkpoints there, and all stay until it has ended
	LastID     checkpoint.ID // no id up to it may be used again
	Skipped    []error       // why newer ones were not taken; only with Request.Fallback
}

// Kept is the metadata of the job's own checkpoints; nil in it: there is one that cannot be read.
func (f *Found) Kept(id job.ID) []*checkpoint.Metadata {
	var out []*checkpoint.Metadata
	for _, c := range append(slices.Clone(f.Older), f.Latest) {
		// What the job was started from shares nothing with its own.
		if c != nil && !c.Claimed && (c.Metadata == nil || c.Metadata.Job == id) {
			out = append(out, c.Metadata)
		}
	}
	return out
}

// Read finds the newest completed checkpoint; see retention.Recover. It is never passed over in silence: when it cannot be read the job does not
// start, or it is said which older one is taken.
func Read(ctx context.Context, r Request) (Found, error) { return reader{r}.find(ctx) }

type reader struct{ Request }

func (l reader) find(ctx context.Context) (Found, error) {
	files, err := l.Archive.Root.Files(ctx, checkpoint.JobDir(l.Job))
	if err != nil {
		return Found{}, err
	}
	known := l.Progress
	completed := known.Completed
	if known.Stopped != "" {
		completed = 0 // it does not go on from any of them
	}
	r, err := retention.Recover(l.Job, files, known.Reserved, completed)
	if err != nil {
		return Found{}, fmt.Errorf("checkpoint %d was completed, but neither %s nor a newer one is there; put it back, or cancel the job and "+
			"submit it again with --from a checkpoint or savepoint", known.Completed, l.Archive.Location(checkpoint.Dir(l.Job, known.Completed)))
	}
	out := Found{Unfinished: r.Unfinished, Files: files, LastID: r.LastID}
	if known.Stopped != "" {
		out.Files = nil
		if out.Latest, err = l.readStop(ctx); err == nil {
			out.LastID = max(out.LastID, out.Latest.Metadata.ID)
		}
		return out, err
	}
	if r.Latest == 0 {
		if out.Latest, err = l.readRestored(ctx); out.Latest != nil {
			out.LastID = max(out.LastID, out.Latest.Metadata.ID)
		}
		return out, err
	}
	if o := l.Restored; o != nil && o.Claimed {
		out.Older = append(out.Older, o) // it counts as the oldest
	}
	if err := l.readRetained(ctx, append(slices.Clone(r.Older), r.Latest), &out); err != nil {
		return Found{}, err
	}
	return out, l.Archive.MakeDurable(ctx, out.Latest.Dir)
}

// readRetained reads the job's own checkpoints, whose ids ascend: the newest is what it goes on from.
func (l reader) readRetained(ctx context.Context, ids []checkpoint.ID, out *Found) (err error) {
	var own []*checkpoint.Completed // newest first
	for _, id := range slices.Backward(ids) {
		c := &checkpoint.Completed{Dir: checkpoint.Dir(l.Job, id)}
		if c.Metadata, err = l.readOwn(ctx, id); out.Latest == nil {
			switch {
			case err == nil:
				out.Latest = c
				continue
			case !l.Fallback:
				return err
			}
			out.Skipped = append(out.Skipped, err)
		}
		own = append(own, c) // it is only kept until newer ones take its place
	}
	slices.Reverse(own)
	if out.Older = append(out.Older, own...); out.Latest == nil {
		return errors.Join(append(out.Skipped, errors.New("there is no older one"))...)
	}
	return nil
}

// readOwn reads one of the job's own checkpoints.
func (l reader) readOwn(ctx context.Context, id checkpoint.ID) (*checkpoint.Metadata, error) {
	dir := checkpoint.Dir(l.Job, id)
	md, err := l.read(ctx, dir)
	if err == nil && (md.Job != l.Job || md.ID != id) {
		err = fmt.Errorf("it is checkpoint %d of job %s", md.ID, md.Job)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint %d in %s cannot be read: %w; repair it, or cancel the job and submit it again with --from an older checkpoint "+
			"or a savepoint", id, l.Archive.Location(dir), err)
	}
	return md, nil
}

// readRestored reads the checkpoint that the job was submitted with; nil: none.
func (l reader) readRestored(ctx context.Context) (*checkpoint.Completed, error) {
	if l.Restored == nil {
		return nil, nil
	}
	c := *l.Restored
	if err := l.readMetadata(ctx, &c); err != nil {
		return nil, fmt.Errorf("the checkpoint %s that it was to start from cannot be read: %w; repair it, or cancel the job and submit it again", l.Archive.Location(c.Dir), err)
	}
	return &c, nil
}

// readStop reads the savepoint that the job was stopped with. Its tasks may have committed what it promised, so there is nothing in its place.
func (l reader) readStop(ctx context.Context) (*checkpoint.Completed, error) {
	c := &checkpoint.Completed{Dir: l.Progress.Stopped, Stopped: true}
	if err := l.readMetadata(ctx, c); err != nil {
		return nil, fmt.Errorf("the savepoint %s that it was stopped with cannot be read: %w; put it back, or cancel the job: what it had not committed by "+
			"then is committed by the job that starts from the savepoint", l.Archive.Location(c.Dir), err)
	}
	return c, nil
}

func (l reader) readMetadata(ctx context.Context, c *checkpoint.Completed) (err error) {
	c.Metadata, err = l.read(ctx, c.Dir)
	return err
}

// read reads a checkpoint, sees that its files are there, and gives the part that the job takes over. What it leaves out was allowed when the
// job was submitted, for the checkpoint and the graph are the same.
func (l reader) read(ctx context.Context, dir string) (*checkpoint.Metadata, error) {
	md, err := l.Archive.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	md, _, err = checkpoint.Fit(md, l.Graph, true)
	return md, err
}
