package sim

import (
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

type linkKey struct {
	edge     string
	from, to job.AttemptID
}

// link is the channel between two attempts: first in first out and whole, until one end dies.
type link struct {
	s        *Sim
	key      linkKey
	sender   *simTask // nil: not deployed yet
	receiver *simTask
	channel  int // at the receiver

	queue   []element.Element // that have arrived
	arrival time.Time         // of the latest element
	records int               // batches that are under way or in the queue
	barrier int64             // the latest that was sent
	sentEnd bool              // end of data
	ends    bool              // the receiver may have got everything
	closed  bool              // that the sender has finished has arrived
	broken  bool
}

func (s *Sim) link(edge string, from, to job.AttemptID) *link {
	key := linkKey{edge, from, to}
	l := s.links[key]
	if l == nil {
		l = &link{s: s, key: key}
		s.links[key] = l
	}
	return l
}

func (l *link) send(e element.Element) error {
	if l.sentEnd && e.Kind == element.Records {
		l.s.violate("order", "%s sends records after its end of data", l.key.from)
	}
	l.sentEnd = l.sentEnd || e.Kind == element.EndOfData
	l.ends = e.Ends() || l.ends && e.Kind != element.Records
	if e.Kind == element.Closed && !l.ends {
		return fmt.Errorf("send to %s: the channel is closed before its end", l.key.to)
	}
	if l.broken {
		if l.ends {
			return nil // a receiver that has got everything may end before its senders
		}
		return fmt.Errorf("send to %s: the connection broke", l.key.to)
	}
	switch e.Kind {
	case element.Barrier:
		l.barrier = e.Checkpoint.ID
	case element.Records:
		l.records++
	}
	arrival := l.s.now.Add(l.s.latency())
	if arrival.Before(l.arrival) {
		arrival = l.arrival
	}
	l.arrival = arrival
	l.s.after(arrival.Sub(l.s.now), "element", func() {
		if l.broken {
			return
		}
		l.closed = l.closed || e.Kind == element.Closed
		l.queue = append(l.queue, e)
		if l.receiver != nil {
			l.receiver.wake()
		}
	})
	return nil
}

// take gives the next element, and credit back to the sender.
func (l *link) take() element.Element {
	e := l.queue[0]
	l.queue = l.queue[1:]
	if e.Kind == element.Records {
		l.records--
		if l.sender != nil {
			l.sender.wake()
		}
	}
	return e
}

// breakOff ends the channel: what is under way is lost, what has arrived can be taken.
func (l *link) breakOff() {
	if l.broken {
		return
	}
	l.broken = true
	if t := l.receiver; t != nil {
		t.wake()
	}
	if t := l.sender; t != nil {
		t.brokenOutput(l)
	}
}

// brokenOutput fails a sender whose receiver has not got everything.
func (t *simTask) brokenOutput(l *link) {
	if t.state == job.TaskRunning && !t.dead && !l.ends {
		t.fail(job.FailureInfrastructure, "lost the receiver "+l.key.to.String())
	}
}

// disconnect breaks the channels of an attempt that has ended. One that is FINISHED has sent everything, and its receivers get it all.
func (t *simTask) disconnect(finished bool) {
	for _, l := range t.inputs {
		t.s.after(t.s.latency(), "channel closed", l.breakOff)
	}
	if finished {
		return
	}
	for _, o := range t.outputs {
		for _, l := range o.links {
			t.s.after(t.s.latency(), "channel lost", l.breakOff)
		}
	}
}

// output is the sending end of an edge.
type output struct {
	t            *simTask
	partitioning job.Partitioning
	links        []*link
	round        int
	buffer       []record
}

// emit puts a record into all outputs.
func (t *simTask) emit(r record) {
	for _, o := range t.outputs {
		o.buffer = append(o.buffer, r)
	}
}

// flush sends what was emitted, a batch for each receiver.
func (t *simTask) flush() error {
	for _, o := range t.outputs {
		batches := make([][]record, len(o.links))
		for _, r := range o.buffer {
			to := 0
			switch o.partitioning {
			case job.Hash:
				to = job.KeyGroupOwner(groupOf(r.key), len(o.links), maxParallelism)
			case job.Rebalance:
				to = o.round % len(o.links)
				o.round++
			}
			batches[to] = append(batches[to], r)
		}
		o.buffer = o.buffer[:0]
		for to, records := range batches {
			if len(records) == 0 {
				continue
			}
			l := o.links[to]
			if err := l.send(element.Element{Kind: element.Records, Batch: batch{records, l.barrier}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// broadcast sends an event behind everything that was emitted before.
func (t *simTask) broadcast(e element.Element) error {
	if err := t.flush(); err != nil {
		return err
	}
	for _, o := range t.outputs {
		for _, l := range o.links {
			if err := l.send(e); err != nil {
				return err
			}
		}
	}
	return nil
}
