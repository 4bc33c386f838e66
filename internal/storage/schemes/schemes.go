package schemes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage"
)

// Opener opens the storages of a process.
type Opener struct{}

// New returns an Opener.
func New() *Opener { return &Opener{} }

// Open opens the storage at a directory path or a file:// URL. It makes the directory, and checks that files can be written there, so
// that a wrong setting shows when the process starts and not at the first checkpoint.
func (o *Opener) Open(_ context.Context, at string) (storage.Storage, error) {
	dir, err := directory(at)
	if err != nil {
		return nil, err
	}
	return storage.NewLocal(dir)
}

// Find opens the storage at a directory path or a file:// URL as it is: nothing is made or written. It gives storage.ErrNotFound, with the
// location, when there is no directory.
func (o *Opener) Find(_ context.Context, at string) (storage.Storage, error) {
	dir, err := directory(at)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("directory %s: %w", at, storage.ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("directory %s: %w", at, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", at)
	}
	return storage.OpenLocal(dir)
}

// OpenExisting is Find for tools without a cluster, which are told when there is nothing at all.
func OpenExisting(ctx context.Context, at string) (storage.Storage, error) {
	return New().Find(ctx, at)
}

// directory finds the directory that a location means.
func directory(at string) (string, error) {
	if at == "" {
		return "", errors.New("no checkpoint directory is given; name a directory or a file:// URL")
	}
	switch scheme := location.Scheme(at); {
	case !strings.Contains(at, "://"):
		return at, nil
	case scheme == "s3":
		return "", fmt.Errorf("checkpoint directory %s: s3 storage is not built in yet; name a directory or a file:// URL", at)
	case scheme != "file":
		return "", fmt.Errorf("checkpoint directory %s: unknown scheme %q; name a directory or a file:// URL", at, scheme)
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", fmt.Errorf("checkpoint directory %s is not a URL: %w", at, err)
	}
	if u.Host != "" && u.Host != "localhost" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("checkpoint directory %s is not of the form file:///absolute/path", at)
	}
	return u.Path, nil
}
