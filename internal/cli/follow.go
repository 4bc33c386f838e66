package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// reconnectTime is how long a run goes on without a connection to the job master.
const reconnectTime = 30 * time.Second

// update is news of a job.
type update struct {
	status gateway.JobStatus
	events []gateway.JobEvent
	lost   error // the connection is lost; it is tried again
}

// follow shows the progress of a job until its end. The end of interrupted is the first Ctrl-C: it cancels the job. A second one leaves it;
// left says what becomes of it then.
func (w *weir) follow(interrupted context.Context, jobs gateway.Jobs, id job.ID, left string) error {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(interrupted))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop(nil)
	updates, watched, canceled := make(chan update), make(chan error, 1), make(chan error, 1)
	wg.Go(func() { watched <- watch(ctx, jobs, id, updates) })
	p := newProgress(w.process.Stderr, w.process.Terminal, id)
	defer p.end()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	first := interrupted.Done()
	for {
		select {
		case u := <-updates:
			p.update(time.Now(), u)
		case <-ticker.C:
			p.tick(time.Now())
		case <-first:
			first = nil
			p.note("canceling job %s; interrupt again to leave it alone", id)
			again, release := w.process.Notify(ctx)
			defer release()
			defer context.AfterFunc(again, func() { stop(errInterruptedTwice) })()
			wg.Go(func() {
				_, err := jobs.Cancel(ctx, id)
				canceled <- err
			})
		case err := <-canceled:
			if err != nil && ctx.Err() == nil {
				p.note("job %s was not canceled: %s", id, errorLine(err))
			}
		case err := <-watched:
			p.end()
			if errors.Is(context.Cause(ctx), errInterruptedTwice) {
				return &exitError{exitLeft, fmt.Errorf("job %s %s", id, left), false}
			}
			if err != nil {
				return fmt.Errorf("how job %s goes on is not known: %w", id, err)
			}
			return w.outcome(p.last)
		}
	}
}

// watch sends the news of a job until its end. A connection that is lost is made again for a while.
func watch(ctx context.Context, jobs gateway.Jobs, id job.ID, updates chan<- update) error {
	seen, alive := time.Time{}, time.Now()
	send := func(u update) error {
		select {
		case updates <- u:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for lost := false; ; {
		err := jobs.Watch(ctx, id, func(s gateway.JobStatus, events []gateway.JobEvent) error {
			for lost && len(events) > 0 && !events[0].Time.After(seen) {
				events = events[1:] // the new connection repeats them
			}
			alive, lost = time.Now(), false
			if n := len(events); n > 0 {
				seen = events[n-1].Time
			}
			return send(update{status: s, events: events})
		})
		if err == nil || ctx.Err() != nil || gateway.CodeOf(err) != gateway.Unavailable || time.Since(alive) > reconnectTime {
			return err
		}
		if !lost {
			lost = true
			if err := send(update{lost: err}); err != nil {
				return err
			}
		}
		select {
		case <-time.After(pollPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
