package masterhook

import (
	"context"
	"errors"
	"fmt"
)

var (
	errNoAnswer = fmt.Errorf("no answer within %s", Timeout)
	errBusy     = errors.New("an earlier call of it has not returned")
)

// bounded runs code of a job, and returns when it has returned, when Timeout is over, or when ctx ends, whichever comes first. busy, if it is not nil,
// holds a value while the code runs: calls that share it run one after another.
func bounded(ctx context.Context, busy chan struct{}, code func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, errNoAnswer)
	defer cancel()
	if busy == nil {
		busy = make(chan struct{}, 1)
	}
	select {
	case busy <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", errBusy, context.Cause(ctx))
	}
	answer := make(chan error, 1)
	go func() { // Wait waits for it
		defer func() { <-busy }()
		answer <- noPanic(ctx, code)
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func noPanic(ctx context.Context, code func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return code(ctx)
}
