//go:build unix && !solaris && !aix

package dirlock

import (
	"errors"
	"os"
	"syscall"
)

// Acquire takes the lock that the file stands for, which is made if there is none, until what it returns is closed. It does not wait.
func Acquire(file string) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
