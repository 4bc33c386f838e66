package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

// lookTimeout bounds how long Publish looks for what has become of a write that gave an error.
const lookTimeout = 20 * time.Second

// Publish writes a file that must not be there yet. After an error it asks the storage what is there now, so that the caller knows what to do
// with what the file refers to: no error means that it is there and durable, an error with ErrUncertain that it may be, any other error that
// it is not. It takes for granted that a storage does nothing more for a call that has returned, unless ErrUncertain is in its error: then the write is
// tried once more, because of two that create the same file the second to arrive changes nothing.
func Publish(ctx context.Context, s Storage, name string, data []byte) error {
	err := s.WriteFile(ctx, name, data, CreateOnly)
	if err == nil {
		return nil
	}
	// The time of the caller may be what ran out.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	if errors.Is(err, ErrUncertain) {
		again := s.WriteFile(ctx, name, data, CreateOnly)
		if again == nil {
			return nil
		}
		if !errors.Is(again, ErrExists) {
			return uncertain(err, again)
		}
	}
	infos, listErr := s.List(ctx, path.Dir(name))
	if listErr != nil {
		return uncertain(err, listErr)
	}
	if !slices.ContainsFunc(infos, func(i Info) bool { return i.Path == name }) {
		return err
	}
	found, readErr := s.ReadFile(ctx, name, int64(len(data)))
	if readErr != nil {
		return uncertain(err, readErr)
	}
	if !bytes.Equal(found, data) {
		return uncertain(err, errors.New("there is a file of that name with another content"))
	}
	// What can be read need not survive a crash of the machine. A write that succeeds makes it so.
	if again := s.WriteFile(ctx, name, data, Replace); again != nil {
		return uncertain(err, again)
	}
	return nil
}

func uncertain(err, why error) error { return fmt.Errorf("%w: %w; then: %w", ErrUncertain, err, why) }
