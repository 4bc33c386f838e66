package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/task"
)

// maxInFlight bounds the snapshots of a task that are being persisted at a time.
const maxInFlight = 4

// part is the state of an operator between its capture and its file.
type part struct {
	items   [][]byte
	isItems bool
	groups  [][]byte // keyed state by key group of the subtask's range; nil: none
	persist func() error
	files   []lsmFile // keyed state in the form of its backend; nil: it has none
}

// snapshot is a snapshot between its synchronous part and its ack.
type snapshot struct {
	t       *simTask
	cp      element.Checkpoint
	part    part
	ended   bool
	inline  bool // the state travels in the ack
	stopped bool // nobody waits for it any more
	file    storage.Writer
	paths   []string // of shared files that it has begun to upload
}

func (p *snapshot) id() checkpoint.ID { return checkpoint.ID(p.cp.ID) }

// snapshot sends the barrier on and captures the state; the rest runs beside the task.
func (t *simTask) snapshot(eff task.Snapshot) error {
	cp := eff.Checkpoint
	if err := t.broadcast(element.Element{Kind: element.Barrier, Checkpoint: cp}); err != nil {
		return err
	}
	t.watched.snapshot(t, checkpoint.ID(cp.ID))
	p := &snapshot{t: t, cp: cp, part: t.op.capture(checkpoint.ID(cp.ID)), ended: t.core.Ended(), inline: t.s.rng.IntN(2) == 0}
	if len(t.snapshots) >= maxInFlight {
		t.decline(p.id(), checkpoint.TaskNotReady)
		return nil
	}
	t.snapshots = append(t.snapshots, p)
	p.beside("persist", p.write)
	return nil
}

// beside goes on with a snapshot after a while, as long as its process lives.
func (p *snapshot) beside(what string, do func()) {
	s := p.t.s
	s.after(s.upTo(2*time.Millisecond)+s.storageDelay(), what, func() {
		if !p.t.dead {
			do()
		}
	})
}

func (p *snapshot) end() {
	p.t.snapshots = slices.DeleteFunc(p.t.snapshots, func(o *snapshot) bool { return o == p })
}

// failed gives the snapshot up before its ack: its file belongs to nobody.
func (p *snapshot) failed(err error) {
	p.end()
	p.removeFile()
	if !p.stopped {
		p.t.s.note("      %s snapshot %d: %v", p.t.attempt, p.id(), err)
		p.t.decline(p.id(), checkpoint.AsyncException)
	}
}

var errStopped = errors.New("the snapshot was stopped")

// write makes the state durable, in a file or in the ack.
func (p *snapshot) write() {
	if p.stopped {
		p.failed(errStopped)
		return
	}
	if p.part.persist != nil {
		if err := p.part.persist(); err != nil {
			p.failed(err)
			return
		}
	}
	state := checkpoint.SubtaskState{Subtask: p.t.attempt.Task.Subtask, Ended: p.ended}
	op := checkpoint.OperatorState{Operator: string(p.t.attempt.Task.Vertex)}
	offset := int64(0)
	if len(p.part.items) > 0 {
		h, offsets, err := p.piece(&offset, p.part.items)
		if err != nil {
			p.failed(err)
			return
		}
		op.Items = &checkpoint.Items{Handle: h, Offsets: offsets}
	}
	if p.isNative() {
		p.writeFiles(state)
		return
	}
	if p.part.groups != nil {
		h, offsets, err := p.piece(&offset, p.part.groups)
		if err != nil {
			p.failed(err)
			return
		}
		op.Keyed = &checkpoint.Keyed{Handle: h, Range: p.t.keyGroups(), Offsets: offsets}
	}
	if op.Items != nil || op.Keyed != nil {
		state.Operators = append(state.Operators, op)
	}
	if p.file == nil {
		p.acknowledge(state)
		return
	}
	p.beside("commit state file", func() {
		err := p.file.Commit()
		if err == nil && p.stopped {
			err = errStopped
		}
		if err != nil {
			p.failed(err)
			return
		}
		p.acknowledge(state)
	})
}

// piece writes pieces of state one after another and returns where they are.
func (p *snapshot) piece(at *int64, pieces [][]byte) (checkpoint.Handle, []int64, error) {
	offsets := []int64{0}
	var data []byte
	for _, x := range pieces {
		data = append(data, x...)
		offsets = append(offsets, int64(len(data)))
	}
	if p.inline {
		return checkpoint.InlineHandle(data), offsets, nil
	}
	name := checkpoint.StateFile(p.t.attempt, p.id())
	if p.file == nil {
		f, err := p.t.s.store.Create(context.Background(), p.cp.Dir+"/"+name)
		if err != nil {
			return checkpoint.Handle{}, nil, err
		}
		p.file = f
	}
	if _, err := p.file.Write(data); err != nil {
		return checkpoint.Handle{}, nil, err
	}
	h := checkpoint.FileHandle(name, *at, data)
	*at += int64(len(data))
	return h, offsets, nil
}

// acknowledge sends the ack. Without an answer it may have been applied, and the file must stay.
func (p *snapshot) acknowledge(state checkpoint.SubtaskState) {
	t, verdict := p.t, checkpoint.Verdict(0)
	t.x.call("ack", func(m *master) {
		m.acknowledge(t.epoch, t.attempt, p.id(), state, func(v checkpoint.Verdict) { verdict = v })
	}, func(err error) {
		p.end()
		switch {
		case p.stopped: // the call was given up
		case err != nil:
			t.decline(p.id(), checkpoint.IOException)
		case verdict == checkpoint.TooLate || verdict == checkpoint.Unknown:
			p.removeFile()
		}
	})
}

func (p *snapshot) removeFile() {
	p.removeUploads()
	if p.inline {
		return
	}
	path := p.cp.Dir + "/" + checkpoint.StateFile(p.t.attempt, p.id())
	if err := p.t.s.store.Remove(context.Background(), path); err != nil {
		p.t.s.note("      state file left behind: %v", err)
	}
}

func (t *simTask) keyGroups() job.KeyGroupRange {
	return job.KeyGroups(t.attempt.Task.Subtask, t.load.graph.Vertices[t.vertex].Parallelism, maxParallelism)
}

// read reads what a handle refers to and verifies it.
func (t *simTask) read(dir string, h checkpoint.Handle) ([]byte, error) {
	data := h.Inline
	if !h.IsInline() {
		f, err := t.s.store.ReadFile(context.Background(), dir+"/"+h.Path, 1<<20)
		if err != nil {
			return nil, err
		}
		data = f[min(h.Offset, int64(len(f))):min(h.Offset+h.Length, int64(len(f)))]
	}
	if err := h.Verify(data); err != nil {
		t.s.violate("I3", "%s restores: %v", t.attempt, err)
		return nil, fmt.Errorf("restore: %w", err)
	}
	return data, nil
}

// readItems returns the items of the restored checkpoint.
func (t *simTask) readItems() ([][]byte, error) {
	var out [][]byte
	for _, op := range t.restore.State.Operators {
		for _, part := range op.Items {
			data, err := t.read(t.restore.Dir, part.Handle)
			if err != nil {
				return nil, err
			}
			for i := range part.Len() {
				out = append(out, part.Item(data, i))
			}
		}
	}
	return out, nil
}
