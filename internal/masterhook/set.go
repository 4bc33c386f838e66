package masterhook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Timeout is how long a hook may take for one call.
const Timeout = 30 * time.Second

// grace is how long Wait waits for the code of a hook.
const grace = 5 * time.Second

// Hook is the code of a hook; see stream.MasterHook. It may have a method JobEnded(ctx) error too.
type Hook interface {
	Trigger(ctx context.Context, checkpoint int64, timestamp time.Time) ([]byte, error)
	Restore(ctx context.Context, checkpoint int64, state []byte) error
	Reset(ctx context.Context) error
}

// Request says whose hooks are to be opened.
type Request struct {
	Job     job.ID
	Epoch   job.LeaderEpoch
	Graph   *job.Graph // with the hooks' ids
	Options job.Options
}

// Opener makes the hooks of a job by running its definition, in the order of Graph.MasterHooks. It runs the job's own code.
type Opener func(Request) ([]Hook, error)

// Set is the hooks of one job. The zero value has none. Its methods may be called from any goroutine.
type Set struct{ hooks []*member }

// member is a hook of a set.
type member struct {
	id   string
	code Hook
	busy chan struct{} // holds a value while the code runs
}

// ReasonMasterHooks is the reason of an error for a job whose hooks the job master cannot run.
const ReasonMasterHooks = "MASTER_HOOKS"

// Open makes the hooks of a job. A job without hooks needs no opener, and none of its code runs.
func Open(ctx context.Context, open Opener, r Request) (*Set, error) {
	ids := r.Graph.MasterHooks
	if len(ids) == 0 {
		return &Set{}, nil
	}
	name := fmt.Sprintf("job %s has the master hook %s", r.Graph.Name, strings.Join(ids, ", "))
	if open == nil {
		return nil, &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: ReasonMasterHooks, Message: name + ", and this job master runs none",
			Remedy: "start the job master from the program that has the job: its command jobmaster",
		}
	}
	var hooks []Hook
	err := bounded(ctx, nil, func(context.Context) (err error) {
		hooks, err = open(r)
		return err
	})
	if err == nil && len(hooks) != len(ids) {
		err = fmt.Errorf("%d hooks were opened for %d ids", len(hooks), len(ids))
	}
	if err != nil {
		return nil, opening(name, err)
	}
	s := &Set{}
	for i, id := range ids {
		s.hooks = append(s.hooks, &member{id, hooks[i], make(chan struct{}, 1)})
	}
	return s, nil
}

// opening is the error of hooks that cannot be opened; one that says what to do is told as it is.
func opening(name string, err error) error {
	if gateway.ReasonOf(err) == ReasonMasterHooks {
		return err
	}
	return &gateway.Error{
		Code: gateway.FailedPrecondition, Reason: ReasonMasterHooks, Message: fmt.Sprintf("%s, which cannot be opened: %v", name, err),
		Remedy: "the hook is opened in the job master's process: see to what it needs there, or submit the job without it",
	}
}

// Empty reports that there are no hooks.
func (s *Set) Empty() bool { return s == nil || len(s.hooks) == 0 }

// String names the hooks.
func (s *Set) String() string {
	var ids []string
	for _, h := range s.hooks {
		ids = append(ids, h.id)
	}
	return strings.Join(ids, ", ")
}

// Trigger calls the hooks for a checkpoint and returns what they keep.
func (s *Set) Trigger(ctx context.Context, id checkpoint.ID, timestamp time.Time) ([]checkpoint.MasterState, error) {
	kept := make([][]byte, len(s.hooks))
	err := s.each(ctx, func(ctx context.Context, i int, h Hook) error {
		state, err := h.Trigger(ctx, int64(id), timestamp)
		if err == nil && len(state) > checkpoint.MaxMasterStateBytes {
			err = fmt.Errorf("it wants to keep %d bytes, at most %d are possible", len(state), checkpoint.MaxMasterStateBytes)
		}
		kept[i] = state
		return err
	})
	if err != nil {
		return nil, err // kept may still be written to
	}
	var out []checkpoint.MasterState
	for i, h := range s.hooks {
		if kept[i] != nil {
			out = append(out, checkpoint.MasterState{Hook: h.id, State: kept[i]})
		}
	}
	return out, nil
}

// Restore calls the hooks before tasks start from md, or, if it is nil, from nothing.
func (s *Set) Restore(ctx context.Context, md *checkpoint.Metadata) error {
	return s.each(ctx, func(ctx context.Context, i int, h Hook) error {
		if md == nil {
			return h.Reset(ctx)
		}
		return h.Restore(ctx, int64(md.ID), md.MasterState(s.hooks[i].id))
	})
}

// JobEnded tells the hooks that want to know that the job has ended for good.
func (s *Set) JobEnded(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, _ int, h Hook) error {
		if l, ok := h.(interface{ JobEnded(context.Context) error }); ok {
			return l.JobEnded(ctx)
		}
		return nil
	})
}

// Wait returns when no code of a hook runs any more, or an error that names the first one that does not return.
func (s *Set) Wait() error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for _, h := range s.hooks {
		select {
		case h.busy <- struct{}{}:
			<-h.busy
		case <-timer.C:
			return fmt.Errorf("master hook %s does not return; its call is left behind", h.id)
		}
	}
	return nil
}

// each calls f for every hook, side by side.
func (s *Set) each(ctx context.Context, f func(ctx context.Context, i int, h Hook) error) error {
	errs := make([]error, len(s.hooks))
	var calls sync.WaitGroup
	for i, h := range s.hooks {
		calls.Go(func() {
			errs[i] = bounded(ctx, h.busy, func(ctx context.Context) error { return f(ctx, i, h.code) })
		})
	}
	calls.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("master hook %s: %w", s.hooks[i].id, err)
		}
	}
	return nil
}
