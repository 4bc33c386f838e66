//go:build !unix || solaris || aix

package dirlock

import (
	"errors"
	"os"
)

// Acquire refuses: without a lock two processes could use the directory.
func Acquire(string) (*os.File, error) {
	return nil, errors.New("a directory of one's own needs file locks, which this build does not have on this system")
}
