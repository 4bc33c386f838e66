package masterhook

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// fake is a hook whose methods all do the same.
type fake struct {
	do    func(ctx context.Context, method string) ([]byte, error)
	calls []string
}

func (f *fake) call(ctx context.Context, method string) ([]byte, error) {
	f.calls = append(f.calls, method) // a race when two methods run at a time
	if f.do == nil {
		return nil, nil
	}
	return f.do(ctx, method)
}

func (f *fake) Trigger(ctx context.Context, _ int64, _ time.Time) ([]byte, error) {
	return f.call(ctx, "trigger")
}

func (f *fake) Restore(ctx context.Context, _ int64, state []byte) error {
	_, err := f.call(ctx, "restore("+string(state)+")")
	return err
}

func (f *fake) Reset(ctx context.Context) error {
	_, err := f.call(ctx, "reset")
	return err
}

// listener hears of the end of the job, too.
type listener struct{ fake }

func (l *listener) JobEnded(ctx context.Context) error {
	_, err := l.call(ctx, "ended")
	return err
}

func setOf(t *testing.T, hooks ...Hook) *Set {
	t.Helper()
	g := &job.Graph{Name: "flights"}
	for i := range hooks {
		g.MasterHooks = append(g.MasterHooks, string(rune('b'-i))) // b, a: not the order of their ids
	}
	s, err := Open(t.Context(), func(Request) ([]Hook, error) { return hooks, nil }, Request{Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSet_CallsEveryHook(t *testing.T) {
	keep := &fake{do: func(context.Context, string) ([]byte, error) { return []byte("x"), nil }}
	end := &listener{}
	s := setOf(t, keep, end)
	states, err := s.Trigger(t.Context(), 7, time.Now())
	if d := cmp.Diff([]checkpoint.MasterState{{Hook: "b", State: []byte("x")}}, states); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	md := &checkpoint.Metadata{ID: 7, MasterStates: []checkpoint.MasterState{{Hook: "b", State: []byte("x")}}}
	for _, err := range []error{s.Restore(t.Context(), md), s.Restore(t.Context(), nil), s.JobEnded(t.Context()), s.Wait()} {
		if err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff([]string{"trigger", "restore(x)", "reset"}, keep.calls); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff([]string{"trigger", "restore()", "reset", "ended"}, end.calls); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if s.String() != "b, a" || s.Empty() || !(*Set)(nil).Empty() {
		t.Error("names")
	}
}

func TestSet_TheFirstErrorNamesItsHook(t *testing.T) {
	fails := func(text string) *fake {
		return &fake{do: func(context.Context, string) ([]byte, error) { return nil, errors.New(text) }}
	}
	large := &fake{do: func(context.Context, string) ([]byte, error) {
		return make([]byte, checkpoint.MaxMasterStateBytes+1), nil
	}}
	panics := &fake{do: func(context.Context, string) ([]byte, error) { panic("boo") }}
	for want, hooks := range map[string][]Hook{
		"master hook b: one":        {fails("one"), fails("two")},
		"master hook a: two":        {&fake{}, fails("two")},
		"master hook b: panic: boo": {panics},
		"master hook b: it wants to keep 65537 bytes, at most 65536 are possible": {large, &fake{}},
	} {
		s := setOf(t, hooks...)
		if _, err := s.Trigger(t.Context(), 1, time.Now()); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if err := s.Wait(); err != nil {
			t.Errorf("a call that has failed is not over: %v", err)
		}
	}
}

func TestSet_AHookThatDoesNotReturn_IsNotCalledAgainBeforeItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var running atomic.Int32
		deaf := &fake{do: func(context.Context, string) ([]byte, error) {
			if running.Add(1) > 1 {
				t.Error("two methods run at a time")
			}
			<-release
			running.Add(-1)
			return []byte("late"), nil
		}}
		s := setOf(t, deaf)
		start := time.Now()
		if states, err := s.Trigger(t.Context(), 1, start); err == nil || err.Error() != "master hook b: no answer within 30s" || states != nil {
			t.Errorf("%v", err)
		}
		if got := time.Since(start); got != Timeout {
			t.Errorf("it took %s", got)
		}
		if err := s.Restore(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "an earlier call of it has not returned (no answer within 30s)") {
			t.Errorf("%v", err)
		}
		if err := s.Wait(); err == nil || err.Error() != "master hook b does not return; its call is left behind" {
			t.Errorf("%v", err)
		}
		close(release)
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		if err := s.Restore(t.Context(), nil); err != nil {
			t.Errorf("it has returned, and is not called: %v", err)
		}
	})
}

func TestSet_EndOfTheContext_EndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polite := &fake{do: func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
		s := setOf(t, polite)
		gone := errors.New("the job master is shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		start := time.Now()
		if _, err := s.Trigger(ctx, 1, start); !errors.Is(err, gone) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestOpen_SaysWhatToDo(t *testing.T) {
	r := Request{Graph: &job.Graph{Name: "flights", MasterHooks: []string{"lease"}}}
	known := &gateway.Error{Code: gateway.FailedPrecondition, Reason: ReasonMasterHooks, Message: "another build", Remedy: "same build"}
	for want, open := range map[string]Opener{
		"job flights has the master hook lease, and this job master runs none (start the job master from the program": nil,
		"another build (same build)":                    func(Request) ([]Hook, error) { return nil, known },
		"which cannot be opened: relative (":            func(Request) ([]Hook, error) { return nil, errors.New("relative") },
		"which cannot be opened: panic: boo (":          func(Request) ([]Hook, error) { panic("boo") },
		"which cannot be opened: 0 hooks were opened (": nil,
	} {
		if strings.Contains(want, "0 hooks") {
			open, want = func(Request) ([]Hook, error) { return nil, nil }, "0 hooks were opened for 1 ids"
		}
		_, err := Open(t.Context(), open, r)
		if err == nil || !strings.Contains(err.Error(), want) || gateway.ReasonOf(err) != ReasonMasterHooks || gateway.CodeOf(err) != gateway.FailedPrecondition {
			t.Errorf("%v, want %s", err, want)
		}
	}
	r.Graph.MasterHooks = nil
	s, err := Open(t.Context(), func(Request) ([]Hook, error) { panic("user code runs without need") }, r)
	if err != nil || !s.Empty() || s.Wait() != nil {
		t.Errorf("no hooks: %v", err)
	}
}
