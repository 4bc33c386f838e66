package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/weirstream/weir/internal/storage"
)

// How often a request is tried, and the pauses between the tries, which double up to the longest. All tries of a small request together take less
// than the minute that the job master gives a call of its storage.
const (
	maxTries  = 5
	minPause  = 100 * time.Millisecond
	maxPause  = 2 * time.Second
	tryTime   = 10 * time.Second
	slowBytes = 256 << 10 // a second: a body that comes slower is given up
)

// settleTime is how long a store may take to carry out a request after its connection is gone.
const settleTime = 15 * time.Second

// pacing is how long a client waits; tests are in a hurry.
type pacing struct{ min, max, try, settle time.Duration }

// bodyTime is the time limit of a try with a body, or with work for the store that depends on its size.
func (p pacing) bodyTime(bytes int64) time.Duration {
	return p.try + time.Duration(bytes/slowBytes)*time.Second
}

// result is what is known after a call.
type result struct {
	err error
	// doubt says that a try of which no answer came may have been carried out, or may still be: also when a later try has succeeded.
	doubt bool
}

// call makes a request, and makes it again while that may help. Each try has a time limit. What f does must be harmless to be done twice, or f must
// know by the number of its try what a second time finds.
func (c *Client) call(ctx context.Context, op Operation, limit time.Duration, f func(ctx context.Context) error) result {
	var out result
	pause := c.pacing.min
	for try := 1; ; try++ {
		if err := context.Cause(ctx); err != nil {
			return result{errors.Join(err, out.err), out.doubt}
		}
		begin := time.Now()
		err := attempt(ctx, limit, f)
		c.stats.add(op, time.Since(begin), err, try > 1)
		if err == nil {
			return result{doubt: out.doubt}
		}
		again, doubt := classify(err)
		out.err, out.doubt = plain(err), out.doubt || doubt
		if ctx.Err() != nil {
			return result{fmt.Errorf("%w (%w)", context.Cause(ctx), out.err), out.doubt}
		}
		if !again {
			return out
		}
		if try == maxTries {
			out.err = fmt.Errorf("%w: tried %d times: %w", storage.ErrUnreachable, try, out.err)
			return out
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
		}
		pause = min(2*pause, c.pacing.max)
	}
}

func attempt(ctx context.Context, limit time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTryTime)
	defer cancel()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errTryTime) {
		return fmt.Errorf("%w for %s", errTryTime, limit)
	}
	return err
}

var errTryTime = errors.New("the object store has not answered")

// classify says whether a second try may help, and whether this one may have been carried out although it gave an error.
func classify(err error) (again, doubt bool) {
	if errors.Is(err, errNoCredentials) || errors.Is(err, errNotRetried) {
		return false, false
	}
	var r minio.ErrorResponse
	if !errors.As(err, &r) {
		var op *net.OpError
		dial := errors.As(err, &op) && op.Op == "dial"
		return true, !dial // no connection, no request; else the line has broken, or nobody has answered in time
	}
	switch r.Code {
	case "SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequests",
		"RequestTimeTooSkewed", "ExpiredToken", "ExpiredTokenException":
		return true, false // refused before anything was done
	case "ConditionalRequestConflict", "OperationAborted", "RequestTimeout":
		return true, true
	}
	switch r.StatusCode {
	case http.StatusTooManyRequests:
		return true, false
	case http.StatusRequestTimeout, 0:
		return true, true
	}
	return r.StatusCode >= 500 && r.StatusCode != http.StatusNotImplemented, r.StatusCode >= 500
}

// errNotRetried marks errors that are found on this side.
var errNotRetried = errors.New("not to be tried again")

// plain leaves out what says nothing to a reader: the URL with its query, and who wrote it.
func plain(err error) error {
	var r minio.ErrorResponse
	var u *url.Error
	switch {
	case errors.As(err, &r):
		return &serverError{r}
	case errors.As(err, &u):
		return u.Err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the answer was cut off")
	}
	return err
}

// serverError is an answer of the store that is not the one that was hoped for.
type serverError struct{ minio.ErrorResponse }

func (e *serverError) Error() string {
	text := fmt.Sprintf("%s: %s (status %d", e.Code, e.ErrorResponse.Error(), e.StatusCode)
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text + ")"
}

// Is finds the errors of package storage.
func (e *serverError) Is(target error) bool {
	switch target {
	case storage.ErrNotFound:
		return e.Code == minio.NoSuchKey
	case storage.ErrExists:
		return e.Code == minio.PreconditionFailed
	}
	return false
}

// code is that of the store's answer; empty: it is another error.
func code(err error) string {
	var e *serverError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
