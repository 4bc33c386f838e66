//go:build unix && !solaris && !aix

package ha

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("another process has the lock")

// acquire takes the lock for this process. The kernel takes it back when the process has ended, after its last system call; so nothing
// that an earlier holder began is still under way.
func acquire(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
