package s3

import (
	"time"

	"github.com/weirstream/weir/internal/storage"
)

// Hurry makes the client wait little, so that tests with many faults are fast.
func (c *Client) Hurry(try, settle time.Duration) {
	c.pacing = pacing{min: time.Millisecond, max: 4 * time.Millisecond, try: try, settle: settle}
}

// MaxTries is how often a request is tried.
const MaxTries = maxTries

// AwaitParts waits until all parts that were begun are uploaded.
func AwaitParts(w storage.Writer) { w.(*writer).work.Wait() }

// SetSettle changes how long a file may take to appear of which no answer came.
func (s *Storage) SetSettle(d time.Duration) { s.client.pacing.settle = d }
