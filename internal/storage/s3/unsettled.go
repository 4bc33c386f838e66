package s3

import (
	"context"
	"strings"
	"sync"
	"time"
)

// unsettled are the files that a request may still bring into being although the call that made it is over. Whoever removes one waits until that is
// past, or the file would come back.
type unsettled struct {
	mu struct {
		sync.Mutex
		until map[string]time.Time
	}
}

func (u *unsettled) init() { u.mu.until = map[string]time.Time{} }

// add notes that a file may come into being during the time settle.
func (u *unsettled) add(key string, settle time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	for k, until := range u.mu.until {
		if now.After(until) {
			delete(u.mu.until, k)
		}
	}
	u.mu.until[key] = now.Add(settle)
}

// wait waits until nothing with a key that begins with prefix, or with that very key, is unsettled.
func (u *unsettled) wait(ctx context.Context, prefix string, below bool) error {
	for {
		pause := time.Until(u.latest(prefix, below))
		if pause <= 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (u *unsettled) latest(prefix string, below bool) (out time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, until := range u.mu.until {
		if (key == prefix || below && strings.HasPrefix(key, prefix)) && until.After(out) {
			out = until
		}
	}
	return out
}
