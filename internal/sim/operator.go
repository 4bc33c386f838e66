package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
)

// operator is what a task runs.
type operator interface {
	restore() error
	open() error
	process(records []record)
	finish() // the end of input: emit what is held
	capture(id checkpoint.ID) part
	complete(id checkpoint.ID) error
}

func newOperator(t *simTask) operator {
	switch t.load.kinds[t.vertex] {
	case source:
		return &sourceOp{stateless: stateless{t}}
	case keyed:
		return &keyedOp{stateless: stateless{t}, counts: map[int]int{}, files: newLSM(t)}
	case sink:
		return &sinkOp{stateless: stateless{t}}
	}
	return &stateless{t}
}

// stateless passes records on.
type stateless struct{ t *simTask }

func (o *stateless) restore() error               { return nil }
func (o *stateless) open() error                  { return nil }
func (o *stateless) finish()                      {}
func (o *stateless) capture(checkpoint.ID) part   { return part{} }
func (o *stateless) complete(checkpoint.ID) error { return nil }

func (o *stateless) process(records []record) {
	for _, r := range records {
		r.path |= 1 << o.t.vertex
		o.t.emit(r)
	}
}

// sourceOp reads splits, each from its position.
type sourceOp struct {
	stateless
	splits []splitState
	next   time.Time // of the next batch
}

type splitState struct{ split, position int }

// open begins with the splits that a fresh start was given.
func (o *sourceOp) open() error {
	defer o.t.s.watch.reads(o)
	for _, split := range o.t.fresh {
		o.splits = append(o.splits, splitState{split: split})
	}
	return nil
}

func (o *sourceOp) restore() error {
	if o.t.restore == nil {
		return nil
	}
	items, err := o.t.readItems()
	for _, item := range items {
		split, n := binary.Uvarint(item)
		position, _ := binary.Uvarint(item[n:])
		o.splits = append(o.splits, splitState{int(split), int(position)})
	}
	return err
}

func (o *sourceOp) capture(checkpoint.ID) part {
	p := part{isItems: true}
	for _, s := range o.splits {
		p.items = append(p.items, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(s.split)), uint64(s.position)))
	}
	return p
}

func (o *sourceOp) ended() bool {
	return !slices.ContainsFunc(o.splits, func(s splitState) bool { return s.position < o.t.load.splits[o.t.vertex][s.split] })
}

// poll emits some records of some split.
func (o *sourceOp) poll() {
	s := o.t.s
	o.next = s.now.Add(o.t.load.pace/2 + s.upTo(o.t.load.pace))
	at := s.rng.IntN(len(o.splits))
	for range 1 + s.rng.IntN(4) {
		sp := &o.splits[at]
		if sp.position >= o.t.load.splits[o.t.vertex][sp.split] {
			at = (at + 1) % len(o.splits)
			continue
		}
		o.t.emit(record{
			source: o.t.vertex, split: sp.split, index: sp.position, key: o.t.load.keyOf(o.t.vertex, sp.split, sp.position), path: 1 << o.t.vertex,
		})
		sp.position++
	}
}

// keyedOp counts the records of each key, tells each record its number, and sends the counts at the end of its input.
type keyedOp struct {
	stateless
	counts map[int]int
	files  *lsm // nil: the state is in memory
}

func (o *keyedOp) restore() error {
	if o.t.restore == nil {
		return nil
	}
	for _, op := range o.t.restore.State.Operators {
		if len(op.Keyed) > 0 && op.Keyed[0].IsNative() {
			if err := o.restoreFiles(op); err != nil {
				return err
			}
			continue
		}
		for _, k := range op.Keyed {
			data, err := o.t.read(o.t.restore.Dir, k.Handle)
			if err != nil {
				return err
			}
			for g := k.Range.Start; g < k.Range.End; g++ {
				if !o.t.keyGroups().Contains(g) {
					return fmt.Errorf("key group %d is not of %s", g, o.t.attempt)
				}
				decodeCounts(k.Group(data, g), func(key, count int) { o.set(key, count) })
			}
		}
	}
	return nil
}

func decodeCounts(data []byte, each func(key, count int)) {
	for len(data) > 0 {
		key, n := binary.Uvarint(data)
		count, m := binary.Uvarint(data[n:])
		data = data[n+m:]
		each(int(key), int(count))
	}
}

func (o *keyedOp) capture(checkpoint.ID) part {
	r := o.t.keyGroups()
	groups := make([][]byte, r.Len())
	for _, key := range o.keys() {
		g := groupOf(key) - r.Start
		groups[g] = binary.AppendUvarint(binary.AppendUvarint(groups[g], uint64(key)), uint64(o.counts[key]))
	}
	p := part{groups: groups}
	if o.files != nil {
		p.files = o.files.capture(o.counts)
	}
	return p
}

func (o *keyedOp) keys() []int {
	var out []int
	for key := range o.t.load.keys {
		if o.counts[key] > 0 {
			out = append(out, key)
		}
	}
	return out
}

func (o *keyedOp) process(records []record) {
	for _, r := range records {
		if !o.t.keyGroups().Contains(groupOf(r.key)) {
			o.t.s.violate("keys", "%s got key %d", o.t.attempt, r.key)
		}
		r.path |= 1 << o.t.vertex
		if !r.total {
			o.set(r.key, o.counts[r.key]+1)
			r.counts[o.t.vertex] = int32(o.counts[r.key])
		}
		o.t.emit(r)
	}
}

func (o *keyedOp) finish() {
	for _, key := range o.keys() {
		o.t.emit(record{source: o.t.vertex, index: o.counts[key], key: key, path: 1 << o.t.vertex, total: true})
	}
}

// sinkOp writes in two phases, as package stream does it.
type sinkOp struct {
	stateless
	buffer  []record
	pending []pendingCommit
	cleaned bool
}

type pendingCommit struct {
	checkpoint checkpoint.ID
	name       string
	tx         *transaction // what is not durable yet
	durable    *bool
}

var errPersist = errors.New("the outside world is not reachable")

func (o *sinkOp) process(records []record) {
	for _, r := range records {
		r.path |= 1 << o.t.vertex
		o.buffer = append(o.buffer, r)
	}
}

func (o *sinkOp) restore() error {
	if o.t.restore == nil {
		return nil
	}
	items, err := o.t.readItems()
	for _, item := range items {
		id, n := binary.Uvarint(item)
		yes := true
		o.pending = append(o.pending, pendingCommit{checkpoint: checkpoint.ID(id), name: string(item[n:]), durable: &yes})
	}
	return err
}

func (o *sinkOp) open() error {
	var from checkpoint.ID
	if o.t.restore != nil {
		from = o.t.restore.Checkpoint
		o.commitUpTo(math.MaxInt64, from, o.t.restore.Dir)
	}
	o.t.s.watch.committed(o.t.s, o.t.attempt, from)
	return nil
}

// capture prepares what was written since the last snapshot. What is pending of aborted checkpoints goes with it.
//
// With the first barrier all subtasks are open, and what earlier attempts of this one had prepared is committed, by whichever subtask has got it; the
// rest goes, as in connector/file.
func (o *sinkOp) capture(id checkpoint.ID) part {
	if !o.cleaned {
		o.cleaned = true
		o.t.s.outside.recover(o.t.attempt)
	}
	if len(o.buffer) > 0 {
		tx := &transaction{owner: o.t.attempt, records: o.buffer}
		o.pending = append(o.pending, pendingCommit{id, fmt.Sprintf("%s/%s-c%d", o.t.attempt.Job, o.t.attempt, id), tx, new(bool)})
		o.buffer = nil
	}
	p := part{isItems: true}
	pending := slices.Clone(o.pending)
	for _, c := range pending {
		p.items = append(p.items, append(binary.AppendUvarint(nil, uint64(c.checkpoint)), c.name...))
	}
	s := o.t.s
	p.persist = func() error {
		for _, c := range pending {
			if *c.durable {
				continue
			}
			if s.fault("persist fails", s.cfg.Faults.PersistFails) {
				return errPersist
			}
			*c.durable = true
			s.outside.prepare(c.name, c.tx)
		}
		return nil
	}
	return p
}

func (o *sinkOp) complete(id checkpoint.ID) error {
	o.commitUpTo(id, id, o.t.s.watch.dirOf(o.t.attempt.Job, id))
	o.t.s.watch.committed(o.t.s, o.t.attempt, id)
	return nil
}

// commitUpTo commits in ascending order what was prepared up to a checkpoint; because, in dir, is the durable checkpoint that allows it.
func (o *sinkOp) commitUpTo(upTo, because checkpoint.ID, dir string) {
	for len(o.pending) > 0 && o.pending[0].checkpoint <= upTo {
		p := o.pending[0]
		o.pending = o.pending[1:]
		o.t.s.outside.commit(o.t.attempt, p.name, because, dir)
	}
}
