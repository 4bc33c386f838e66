//go:build !unix || solaris || aix

package ha

import (
	"errors"
	"os"
)

var errLocked = errors.New("another process has the lock")

// acquire refuses: without a lock two job masters could run the same jobs.
func acquire(string) (*os.File, error) {
	return nil, errors.New("a data directory needs file locks, which this build does not have on this system")
}
