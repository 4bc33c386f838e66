package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// prefix is the part of the input that a checkpoint stands for, and what follows from it by the model: a sequential run up to there.
type prefix struct {
	dir     string
	work    *workload // of the job that took it
	offsets [][]int   // by vertex and split
	ended   map[job.TaskID]bool
	counts  [][]int // by vertex and key: how many records of the key a keyed vertex has counted
}

// prefixOf reads the offsets of the sources out of a checkpoint.
func (s *Sim) prefixOf(dir string, md *checkpoint.Metadata) (*prefix, error) {
	w := s.planOf(md.Fingerprint)
	p := &prefix{dir: dir, work: w, offsets: make([][]int, len(w.kinds)), ended: map[job.TaskID]bool{}, counts: make([][]int, len(w.kinds))}
	for i := range w.kinds {
		p.offsets[i] = make([]int, len(w.graph.Vertices[i].Splits))
		if s.plans.floor != nil {
			copy(p.offsets[i], s.plans.floor.offsets[i]) // whoever had ended there has no state any more
		}
		p.counts[i] = make([]int, w.keys)
	}
	for v, vs := range md.Vertices {
		for _, sub := range vs.Subtasks {
			p.ended[job.TaskID{Vertex: vs.Vertex, Subtask: sub.Subtask}] = sub.Ended
			if sub.Ended && len(sub.Operators) == 0 { // finished: it stands for all that it was given
				for _, split := range s.watch.splits[job.TaskID{Vertex: vs.Vertex, Subtask: sub.Subtask}] {
					p.offsets[v][split] = w.splits[v][split]
				}
			}
			for _, op := range sub.Operators {
				if w.kinds[v] != source || op.Items == nil {
					continue
				}
				data, err := s.readState(dir, op.Items.Handle)
				if err != nil {
					return nil, err
				}
				for i := range op.Items.Len() {
					item := op.Items.Item(data, i)
					split, n := binary.Uvarint(item)
					offset, _ := binary.Uvarint(item[n:])
					p.offsets[v][split] = int(offset)
				}
			}
		}
	}
	p.sequentialRun()
	return p, nil
}

// sequentialRun counts what the keyed vertices have seen, once for each way to them.
func (p *prefix) sequentialRun() {
	w := p.work
	for v, splits := range p.offsets {
		for split, offset := range splits {
			for i := range offset {
				key := w.keyOf(v, split, i)
				for k := range w.kinds {
					if w.kinds[k] == keyed {
						p.counts[k][key] += len(w.paths[v][k])
					}
				}
			}
		}
	}
}

// checkState is I8: the keyed state in a checkpoint is that of a sequential run up to its offsets.
func (s *Sim) checkState(p *prefix, md *checkpoint.Metadata) error {
	for v, vs := range md.Vertices {
		if s.work.kinds[v] != keyed {
			continue
		}
		got := make([]int, s.work.keys)
		for _, sub := range vs.Subtasks {
			for _, op := range sub.Operators {
				counts, err := s.readCounts(p.dir, op.Keyed)
				if err != nil {
					return err
				}
				for key, count := range counts {
					got[key] += count
				}
			}
			if sub.Ended { // it may have finished, now or before what was restored: then its counts are in its output, and of no more use
				s.countFinished(p, v, sub.Subtask, got)
			}
		}
		for key, want := range p.counts[v] {
			if got[key] != want {
				return fmt.Errorf("key %d of %s has count %d, a sequential run has %d", key, vs.Vertex, got[key], want)
			}
		}
	}
	return nil
}

// countFinished adds what a keyed task that has finished must have counted, for keys of which it has no state.
func (s *Sim) countFinished(p *prefix, vertex, subtask int, into []int) {
	for key, count := range p.counts[vertex] {
		if p.work.owner(vertex, key).Subtask == subtask && into[key] == 0 {
			into[key] += count
		}
	}
}

// visibleOutput is what is visible outside of one sink vertex.
type visibleOutput struct {
	records map[recordID]bool
	perPath map[pathSplit]int
	stamps  map[stampKey]bool
	perKey  map[suffixKey]numbers
	totals  map[recordID]int
}

type recordID struct {
	source, split, index int
	path                 uint8
}

type pathSplit struct {
	source, split int
	path          uint8
}

// suffixKey is a key of a keyed vertex, as a sink sees it by one of the ways from there.
type suffixKey struct {
	vertex, key int
	suffix      uint8
}

type stampKey struct {
	suffixKey
	number int32
}

type numbers struct {
	n       int
	highest int32
}

func newVisible() *visibleOutput {
	return &visibleOutput{
		records: map[recordID]bool{}, perPath: map[pathSplit]int{}, stamps: map[stampKey]bool{}, perKey: map[suffixKey]numbers{},
		totals: map[recordID]int{},
	}
}

// add makes a record visible that a checkpoint with this prefix has committed.
func (o *visibleOutput) add(w *workload, r record, p *prefix) error {
	if r.total {
		return o.addTotal(r, p)
	}
	id := recordID{r.source, r.split, r.index, r.path}
	switch {
	case o.records[id]:
		return fmt.Errorf("record %+v is there twice", id)
	case r.index >= p.offsets[r.source][r.split]:
		return fmt.Errorf("record %+v is behind the checkpoint's offset %d", id, p.offsets[r.source][r.split])
	}
	o.records[id] = true
	o.perPath[pathSplit{r.source, r.split, r.path}]++
	for v, k := range w.kinds {
		if k != keyed || r.path&(1<<v) == 0 {
			continue
		}
		key := suffixKey{v, r.key, r.path >> v << v}
		if stamp := (stampKey{key, r.counts[v]}); o.stamps[stamp] {
			return fmt.Errorf("count %d of %+v is there twice", r.counts[v], key)
		}
		o.stamps[stampKey{key, r.counts[v]}] = true
		n := o.perKey[key]
		o.perKey[key] = numbers{n.n + 1, max(n.highest, r.counts[v])}
	}
	return nil
}

func (o *visibleOutput) addTotal(r record, p *prefix) error {
	id := recordID{source: r.source, index: r.key, path: r.path}
	_, twice := o.totals[id]
	switch {
	case twice:
		return fmt.Errorf("total of key %d of vertex %d is there twice", r.key, r.source)
	case !p.ended[p.work.owner(r.source, r.key)]:
		return fmt.Errorf("total of key %d of vertex %d is behind the checkpoint, in which the vertex had not ended", r.key, r.source)
	case r.index != p.counts[r.source][r.key]:
		return fmt.Errorf("total of key %d of vertex %d is %d, a sequential run has %d", r.key, r.source, r.index, p.counts[r.source][r.key])
	}
	o.totals[id] = r.index
	return nil
}

// owner is the task of a keyed vertex that has a key.
func (w *workload) owner(vertex, key int) job.TaskID {
	v := w.graph.Vertices[vertex]
	return job.TaskID{Vertex: v.ID, Subtask: job.KeyGroupOwner(groupOf(key), v.Parallelism, maxParallelism)}
}

// complete says what is missing of a prefix at a sink; add has seen to it that nothing is too much.
func (o *visibleOutput) complete(w *workload, sink int, p *prefix) error {
	for v, splits := range p.offsets {
		for _, path := range w.paths[v][sink] {
			for split, want := range splits {
				if got := o.perPath[pathSplit{v, split, path}]; got != want {
					return fmt.Errorf("split %d of vertex %d by path %04b: %d records are there, the checkpoint is at %d", split, v, path, got, want)
				}
			}
		}
	}
	for k := range w.kinds {
		if w.kinds[k] != keyed {
			continue
		}
		for _, suffix := range w.paths[k][sink] {
			for key, want := range p.counts[k] {
				if got := o.perKey[suffixKey{k, key, suffix}]; got.n != want || int(got.highest) != want {
					return fmt.Errorf("key %d of vertex %d: %d counts up to %d are there, a sequential run has %d", key, k, got.n, got.highest, want)
				}
				_, got := o.totals[recordID{source: k, index: key, path: suffix}]
				if want := want > 0 && p.ended[p.work.owner(k, key)]; got != want {
					return fmt.Errorf("total of key %d of vertex %d: there %t, expected %t", key, k, got, want)
				}
			}
		}
	}
	return nil
}
