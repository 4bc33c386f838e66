package task

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is what happened around a task, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last take, when nothing moves any more.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// batch is a batch of records.
type batch []string

func (b batch) Len() int { return len(b) }

// operator is an operator with everything but keyed state. What it does beside its entry in the journal is in the hooks.
type operator struct {
	id       string
	j        *journal
	items    stream.Items
	restored [][]byte
	hooks    map[string]func() error
}

func (o *operator) do(what string) error {
	o.j.add("%s.%s", o.id, what)
	if f := o.hooks[what]; f != nil {
		return f()
	}
	return nil
}

func (o *operator) Open() error   { return o.do("open") }
func (o *operator) Close() error  { return o.do("close") }
func (o *operator) Finish() error { return o.do("finish") }

func (o *operator) SnapshotItems(id int64) (stream.Items, error) {
	return o.items, o.do(fmt.Sprintf("snapshot(%d)", id))
}

func (o *operator) RestoreItems(items [][]byte) error {
	o.restored = items
	return o.do(fmt.Sprintf("restore%q", items))
}

func (o *operator) CheckpointComplete(id int64) error { return o.do(fmt.Sprintf("complete(%d)", id)) }
func (o *operator) CheckpointAborted(id int64) error  { return o.do(fmt.Sprintf("aborted(%d)", id)) }

// keyedOperator has one piece of state for each key group.
type keyedOperator struct {
	*operator
	groups   map[int][]byte
	released atomic.Int32
}

func (o *keyedOperator) RunningKey() string { return "k7" }

func (o *keyedOperator) Schemas() []stream.StateSchema {
	return []stream.StateSchema{{Name: "n", Kind: "value", KeyType: "string", ValueType: "int64"}}
}

func (o *keyedOperator) SnapshotKeyed() (stream.KeyedSnapshot, error) {
	return &keyedSnapshot{o, maps.Clone(o.groups)}, o.do("snapshot-keyed")
}

func (o *keyedOperator) RestoreGroup(group int, written []stream.StateSchema, data []byte) error {
	if !slices.Equal(written, o.Schemas()) {
		return fmt.Errorf("schemas %v", written)
	}
	o.groups[group] = bytes.Clone(data)
	return nil
}

type keyedSnapshot struct {
	op     *keyedOperator
	groups map[int][]byte
}

func (s *keyedSnapshot) AppendGroup(dst []byte, group int) ([]byte, error) {
	if f := s.op.hooks["append"]; f != nil {
		if err := f(); err != nil {
			return dst, err
		}
	}
	return append(dst, s.groups[group]...), nil
}

func (s *keyedSnapshot) ReleaseGroup(group int) { delete(s.groups, group) }

func (s *keyedSnapshot) Release() { s.op.released.Add(1) }

// stateless has nothing but a life.
type stateless struct{}

func (stateless) Open() error  { return nil }
func (stateless) Close() error { return nil }

// input hands out elements in the order in which they were put, but for channels that are blocked.
type input struct {
	channels int
	wake     func()
	mu       sync.Mutex
	queue    []arrived
	blocked  map[int]bool
	err      error
}

type arrived struct {
	channel int
	element element.Element
}

func (in *input) put(channel int, elements ...element.Element) {
	in.mu.Lock()
	for _, e := range elements {
		in.queue = append(in.queue, arrived{channel, e})
	}
	in.mu.Unlock()
	in.wake()
}

func (in *input) fail(err error) {
	in.mu.Lock()
	in.err = err
	in.mu.Unlock()
	in.wake()
}

func (in *input) Channels() int { return in.channels }

func (in *input) Next() (int, element.Element, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	i := slices.IndexFunc(in.queue, func(a arrived) bool { return !in.blocked[a.channel] })
	if i < 0 {
		return 0, element.Element{}, false, in.err
	}
	a := in.queue[i]
	in.queue = slices.Delete(in.queue, i, i+1)
	return a.channel, a.element, true, nil
}

func (in *input) Block(channel int) { in.blocked[channel] = true }
func (in *input) Unblock()          { clear(in.blocked) }

// output is an edge behind the task. Records wait in it until they are flushed.
type output struct {
	j        *journal
	waiting  []string
	sent     int64
	stalled  chan struct{} // when not nil, Flush waits for it
	canceled <-chan struct{}
}

func (o *output) Buffered() bool { return len(o.waiting) > 0 }

func (o *output) Flush() error {
	if len(o.waiting) == 0 {
		return nil
	}
	if o.stalled != nil {
		o.j.add("stalled")
		select {
		case <-o.stalled:
		case <-o.canceled:
			return errors.New("canceled while it waits for credit")
		}
	}
	o.j.add("send%q", o.waiting)
	o.sent += int64(len(o.waiting))
	o.waiting = nil
	return nil
}

func (o *output) Broadcast(e element.Element) error {
	o.j.add("%s", e)
	return nil
}

func (o *output) Records() int64 { return o.sent }

// master is the job master. It answers acks with verdict and err, after ack when that is not nil.
type master struct {
	j       *journal
	mu      sync.Mutex
	verdict checkpoint.Verdict
	err     error
	ack     func(ctx context.Context, id checkpoint.ID) error
	acked   map[checkpoint.ID]checkpoint.SubtaskState
	metrics checkpoint.Metrics
}

func (m *master) Acknowledge(ctx context.Context, id checkpoint.ID, state checkpoint.SubtaskState, metrics checkpoint.Metrics) (checkpoint.Verdict, error) {
	if m.ack != nil {
		if err := m.ack(ctx, id); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.j.add("ack(%d)", id)
	m.acked[id], m.metrics = state, metrics
	return m.verdict, m.err
}

func (m *master) Decline(_ context.Context, id checkpoint.ID, reason checkpoint.Reason, message string) {
	m.j.add("decline(%d, %s, %s)", id, reason, message)
}

func (m *master) Running()   { m.j.add("running") }
func (m *master) EndOfData() { m.j.add("report-end-of-data") }

func (m *master) Backlog(behind bool) { m.j.add("report-backlog(%t)", behind) }

// rig is a task with everything around it.
type rig struct {
	t      *testing.T
	j      *journal
	ops    []*operator
	cfg    Config
	in     *input
	out    *output
	files  *files
	master *master
	mail   Mailbox
	task   *Task
	cancel context.CancelCauseFunc
	ended  chan struct{}
	err    error
}

var testAttempt = job.AttemptID{Job: "j", Task: job.TaskID{Vertex: "v", Subtask: 1}, Attempt: 3}

// newRig returns a task of two input channels with the operators a, b and so on; the head emits what it is given.
func newRig(t *testing.T, operators int) *rig {
	r := &rig{t: t, j: &journal{}, mail: NewMailbox(), ended: make(chan struct{})}
	r.in = &input{channels: 2, wake: r.mail.Wake, blocked: map[int]bool{}}
	r.out = &output{j: r.j}
	r.files = &files{j: r.j, made: map[string][]byte{}, hooks: map[string]func() error{}}
	r.master = &master{j: r.j, verdict: checkpoint.Kept, acked: map[checkpoint.ID]checkpoint.SubtaskState{}}
	chain := &Chain{Running: new(int)}
	for i := range operators {
		op := &operator{id: string(rune('a' + i)), j: r.j, hooks: map[string]func() error{}}
		r.ops = append(r.ops, op)
		chain.Operators = append(chain.Operators, Operator{op.id, op})
	}
	chain.Deliver = func(channel int, b element.Batch) error {
		for _, v := range b.(batch) {
			if err := r.ops[0].do(fmt.Sprintf("collect(%d:%s)", channel, v)); err != nil {
				return err
			}
			r.out.waiting = append(r.out.waiting, v)
		}
		return nil
	}
	r.cfg = Config{
		Attempt: testAttempt, Log: zap.NewNop(), Chain: chain, Input: r.in, Outputs: []Output{r.out},
		KeyGroups: job.KeyGroupRange{Start: 2, End: 5}, Files: r.files, JobMaster: r.master, Linger: time.Second,
	}
	return r
}

// keyed gives operator i keyed state.
func (r *rig) keyed(i int, groups map[int][]byte) *keyedOperator {
	k := &keyedOperator{operator: r.ops[i], groups: groups}
	r.cfg.Chain.Operators[i].Operator = k
	return k
}

// source makes the head a source that does what poll says.
func (r *rig) source(poll func() (stream.Next, error)) {
	r.cfg.Input, r.cfg.Chain.Deliver = nil, nil
	r.cfg.Chain.Source = pollFunc(poll)
}

type pollFunc func() (stream.Next, error)

func (f pollFunc) Poll(int) (stream.Next, error) { return f() }
func (f pollFunc) Emitted() int64                { return 0 }
func (f pollFunc) ProcessingBacklog() bool       { return false }

func (r *rig) start() *rig {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	r.cancel, r.out.canceled = cancel, ctx.Done()
	r.files.attempt = r.cfg.Attempt
	r.task = New(r.cfg, r.mail)
	go func() {
		defer close(r.ended)
		r.err = r.task.Run(ctx)
	}()
	r.t.Cleanup(func() { _ = r.stop() })
	return r
}

var errStop = errors.New("stopped by the test")

// stop cancels the task and returns how it ended.
func (r *rig) stop() error {
	r.cancel(errStop)
	<-r.ended
	return r.err
}

// wait returns how the task ended by itself.
func (r *rig) wait() error {
	r.t.Helper()
	synctest.Wait()
	select {
	case <-r.ended:
	default:
		r.t.Fatal("the task goes on")
	}
	return r.err
}

func (r *rig) post(events ...Event) {
	r.t.Helper()
	for _, ev := range events {
		if err := r.mail.Post(ev); err != nil {
			r.t.Fatal(err)
		}
	}
}

// expect compares the journal since the last look.
func (r *rig) expect(want ...string) {
	r.t.Helper()
	if got := r.j.take(); !slices.Equal(got, want) {
		r.t.Fatalf("happened:\n %q\nwant\n %q", got, want)
	}
}

func recordsOf(v ...string) element.Element {
	return element.Element{Kind: element.Records, Batch: batch(v)}
}

func barrierOf(id int64) element.Element {
	return element.Element{Kind: element.Barrier, Checkpoint: cpOf(id)}
}

func cpOf(id int64) element.Checkpoint {
	return element.Checkpoint{ID: id, Timestamp: time.Now().UnixMilli(), Dir: fmt.Sprintf("j/chk-%d", id)}
}

var endOfData = element.Element{Kind: element.EndOfData}

// both puts an element into both channels.
func (r *rig) both(e element.Element) {
	r.in.put(0, e)
	r.in.put(1, e)
}

// big is state that does not fit inline.
func big(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i)
	}
	binary.LittleEndian.PutUint32(b, uint32(n))
	return b
}
