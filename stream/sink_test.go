package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// store is a sink that writes down what is done to it.
type store struct {
	twoPhase bool
	journal  []string
	env      SinkEnv
	written  []string
	fail     map[string]error
	persist  map[string]error // by transaction
}

func (s *store) do(what string, args ...any) error {
	line := fmt.Sprintf(what, args...)
	s.journal = append(s.journal, line)
	return s.fail[line]
}

func (s *store) take() []string {
	j := s.journal
	s.journal = nil
	return j
}

func (s *store) Open(env SinkEnv) (Writer[string], error) {
	s.env = env
	w := &writer{s}
	if s.twoPhase {
		return committer{w}, s.do("open")
	}
	return w, s.do("open")
}

type writer struct{ *store }

func (w *writer) Write(_ Timestamp, v string) error {
	w.written = append(w.written, v)
	return w.do("write %s", v)
}
func (w *writer) Flush() error { return w.do("flush") }
func (w *writer) Close() error { return w.do("close") }

type committer struct{ *writer }

func (c committer) Prepare(id int64) (Prepared, error) {
	if err := c.do("prepare %d", id); err != nil || len(c.written) == 0 {
		return Prepared{}, err
	}
	tx := strings.Join(c.written, "+")
	c.written = nil
	return Prepared{Transaction: []byte(tx), Persist: func() error {
		if err := c.do("persist %s", tx); err != nil {
			return err
		}
		return c.persist[tx]
	}}, nil
}

func (c committer) Commit(tx []byte) error { return c.do("commit %s", tx) }
func (c committer) Recover() error         { return c.do("recover") }

// sinkOf builds the operator of a sink.
func sinkOf(t *testing.T, s *store) *sinkOperator[string] {
	t.Helper()
	j := NewJob("test", nil)
	To(From(j, "source", nowhere[string]{}), "sink", Sink[string](s))
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	env := testEnv("sink")
	env.Subtask, env.Parallelism, env.Restored = 2, 4, true
	return must(j.Nodes()[1].Build(env, nil))(t).Operator.(*sinkOperator[string])
}

func (s *store) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := s.take(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot takes the synchronous part and runs the rest.
func snapshot(t *testing.T, op *sinkOperator[string], id int64) ([][]byte, error) {
	t.Helper()
	items := must(op.SnapshotItems(id))(t)
	if items.Persist == nil {
		return items.Items, nil
	}
	return items.Items, items.Persist()
}

func TestSink_OnePhase(t *testing.T) {
	s := &store{}
	op := sinkOf(t, s)
	ok(t, op.Open())
	if want := (SinkEnv{Job: "test", JobID: "j1", Operator: "sink", Subtask: 2, Parallelism: 4, Attempt: 2, Restored: true}); s.env != want {
		t.Errorf("opened with %+v, want %+v", s.env, want)
	}
	ok(t, op.Collect(1, "a"))
	if items, err := snapshot(t, op, 1); len(items) != 0 || err != nil {
		t.Errorf("a snapshot has %q, %v", items, err)
	}
	ok(t, op.CheckpointComplete(1))
	ok(t, op.Finish())
	ok(t, op.Close())
	s.expect(t, "open", "write a", "flush", "flush", "close")
}

func TestSink_TwoPhases_CommitsWhatIsDurableInOrder(t *testing.T) {
	s := &store{twoPhase: true}
	op := sinkOf(t, s)
	ok(t, op.Open())
	ok(t, op.Collect(1, "a"))
	_, err := snapshot(t, op, 1)
	ok(t, err)
	ok(t, op.Collect(1, "b"))
	_, err = snapshot(t, op, 2)
	ok(t, err)
	_, err = snapshot(t, op, 3) // nothing was written
	ok(t, err)
	ok(t, op.Collect(1, "c"))
	items, err := snapshot(t, op, 4)
	ok(t, err)
	if len(items) != 3 {
		t.Errorf("the snapshot has %q, want all three transactions that are not committed", items)
	}
	s.expect(t, "open", "recover", "write a", "flush", "prepare 1", "persist a", "write b", "flush", "prepare 2", "persist b",
		"flush", "prepare 3", "write c", "flush", "prepare 4", "persist c")
	ok(t, op.CheckpointComplete(3))
	s.expect(t, "commit a", "commit b")
	ok(t, op.CheckpointComplete(3))
	ok(t, op.CheckpointComplete(4))
	s.expect(t, "commit c")
}

func TestSink_TwoPhases_AbortedOutputGoesWithTheNextCheckpoint(t *testing.T) {
	s := &store{twoPhase: true, persist: map[string]error{"a": errors.New("disk full")}}
	op := sinkOf(t, s)
	ok(t, op.Open())
	ok(t, op.Collect(1, "a"))
	if _, err := snapshot(t, op, 1); err == nil {
		t.Fatal("the snapshot does not fail")
	}
	ok(t, op.CheckpointAborted(1))
	if _, err := snapshot(t, op, 2); err == nil {
		t.Error("checkpoint 2 is acknowledged although the output of 1 is not durable")
	}
	s.take()
	s.persist = nil
	items, err := snapshot(t, op, 3)
	ok(t, err)
	if len(items) != 1 {
		t.Errorf("the snapshot has %q", items)
	}
	_, err = snapshot(t, op, 4)
	ok(t, err)
	s.expect(t, "flush", "prepare 3", "persist a", "flush", "prepare 4") // persisted once
	ok(t, op.CheckpointComplete(3))
	s.expect(t, "commit a")
}

func TestSink_TwoPhases_RestoreCommitsThenRecovers(t *testing.T) {
	first := &store{twoPhase: true}
	op := sinkOf(t, first)
	ok(t, op.Open())
	var items [][]byte
	for id, v := range []string{"a", "b", "c"} {
		ok(t, op.Collect(1, v))
		var err error
		items, err = snapshot(t, op, int64(id+9))
		ok(t, err)
	}
	slices.Reverse(items) // a restore gives them in any order
	s := &store{twoPhase: true}
	restored := sinkOf(t, s)
	ok(t, restored.RestoreItems(items))
	ok(t, restored.Open())
	s.expect(t, "open", "commit a", "commit b", "commit c", "recover")
	if items, err := snapshot(t, restored, 12); len(items) != 0 || err != nil {
		t.Errorf("what is committed is in the next snapshot: %q, %v", items, err)
	}
}

func TestSink_TwoPhases_FailedCommitIsTriedAgain(t *testing.T) {
	s := &store{twoPhase: true, fail: map[string]error{"commit b": errors.New("no answer")}}
	op := sinkOf(t, s)
	ok(t, op.Open())
	for id, v := range []string{"a", "b"} {
		ok(t, op.Collect(1, v))
		_, err := snapshot(t, op, int64(id+1))
		ok(t, err)
	}
	s.take()
	err := op.CheckpointComplete(2)
	if err == nil || err.Error() != "operator sink: commit output of checkpoint 2: no answer" {
		t.Errorf("got %v", err)
	}
	s.fail = nil
	ok(t, op.CheckpointComplete(2))
	s.expect(t, "commit a", "commit b", "commit b")
}

func TestSink_RestoreRefuses(t *testing.T) {
	op := sinkOf(t, &store{twoPhase: true})
	if err := op.RestoreItems([][]byte{{}}); err == nil || !strings.Contains(err.Error(), "truncated item") {
		t.Errorf("an empty item: %v", err)
	}
	op = sinkOf(t, &store{})
	ok(t, op.RestoreItems([][]byte{{2, 'x'}}))
	if err := op.Open(); !IsPermanent(err) || !strings.Contains(err.Error(), "no longer commits") {
		t.Errorf("prepared output for a sink of one phase: %v", err)
	}
}

func TestSink_FailuresNameTheOperator(t *testing.T) {
	failure := errors.New("broken")
	for what, call := range map[string]func(*sinkOperator[string]) error{
		"open":      func(op *sinkOperator[string]) error { return nil },
		"recover":   func(op *sinkOperator[string]) error { return nil },
		"write a":   func(op *sinkOperator[string]) error { return op.Collect(1, "a") },
		"flush":     func(op *sinkOperator[string]) error { _, err := op.SnapshotItems(1); return err },
		"prepare 1": func(op *sinkOperator[string]) error { _, err := op.SnapshotItems(1); return err },
		"close":     func(op *sinkOperator[string]) error { return op.Close() },
	} {
		op := sinkOf(t, &store{twoPhase: true, fail: map[string]error{what: failure}})
		err := op.Open()
		if err == nil {
			err = call(op)
		}
		var named *OperatorError
		if !errors.Is(err, failure) || !errors.As(err, &named) || named.Operator != "sink" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	ok(t, sinkOf(t, &store{}).Close()) // never opened
}
