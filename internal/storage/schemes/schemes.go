package schemes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
)

// maxClients is how many buckets a process keeps connections to. Its own is one; others hold savepoints.
const maxClients = 16

// Opener opens the storages of a process. It may be used by any number of goroutines.
type Opener struct {
	stats *s3.Stats
	mu    struct {
		sync.Mutex
		clients map[clientKey]*client
	}
}

type clientKey struct {
	bucket  string
	service s3.Service
}

// client is what is shared by all storages in a bucket.
type client struct {
	*s3.Client
	tried atomic.Bool // and found to be good for all that is needed
}

// New returns an Opener.
func New() *Opener {
	o := &Opener{stats: &s3.Stats{}}
	o.mu.clients = map[clientKey]*client{}
	return o
}

// Requests are what was asked of object stores so far.
func (o *Opener) Requests() s3.Counts { return o.stats.Read() }

// Close closes connections that are not used.
func (o *Opener) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.mu.clients {
		c.Close()
	}
}

// Open opens the storage at a directory path or a URL. A directory is made, and it is tried whether files can be written there, so that a wrong
// setting shows when the process starts and not at the first checkpoint; of the storages in one bucket that is done once.
func (o *Opener) Open(ctx context.Context, at string) (storage.Storage, error) {
	if location.Scheme(at) != "s3" {
		dir, err := directory(at)
		if err != nil {
			return nil, err
		}
		return storage.NewLocal(dir)
	}
	c, s, err := o.s3(at)
	if err == nil && !c.tried.Load() {
		err = s.Try(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint directory %s: %w", location.Redacted(at), err)
	}
	c.tried.Store(true)
	return s, nil
}

// Find opens the storage at a directory path or a URL as it is: nothing is made or written. It gives storage.ErrNotFound, with the
// location, when there is no directory; in an object store there is no difference between that and one that is empty.
func (o *Opener) Find(_ context.Context, at string) (storage.Storage, error) {
	if location.Scheme(at) != "s3" {
		return findLocal(at)
	}
	_, s, err := o.s3(at)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", location.Redacted(at), err)
	}
	return s, nil
}

func findLocal(at string) (storage.Storage, error) {
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

// OpenExisting is Find for tools without a cluster: nothing in a bucket is storage.ErrNotFound too.
func OpenExisting(ctx context.Context, at string) (storage.Storage, error) {
	o := New()
	found, err := o.Find(ctx, at)
	if s, ok := found.(*s3.Storage); ok {
		there, err := s.Exists(ctx)
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", location.Redacted(at), err)
		}
		if !there {
			return nil, fmt.Errorf("directory %s: %w", location.Redacted(at), storage.ErrNotFound)
		}
	}
	return found, err
}

// s3 gives the storage at a location in an object store, and the client that it shares with others.
func (o *Opener) s3(at string) (*client, *s3.Storage, error) {
	config, err := s3.Parse(at, os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := clientKey{config.Bucket, config.Service}
	c := o.mu.clients[key]
	if c == nil {
		made, err := s3.NewClient(config, o.stats)
		if err != nil {
			return nil, nil, err
		}
		if len(o.mu.clients) >= maxClients {
			for _, old := range o.mu.clients {
				old.Close()
			}
			clear(o.mu.clients)
		}
		c = &client{Client: made}
		o.mu.clients[key] = c
	}
	return c, c.In(config.Prefix), nil
}

// directory finds the directory that a location means.
func directory(at string) (string, error) {
	if at == "" {
		return "", errors.New("no checkpoint directory is given; name a directory, a file:// URL or an s3:// URL")
	}
	switch scheme := location.Scheme(at); {
	case !strings.Contains(at, "://"):
		return at, nil
	case scheme != "file":
		return "", fmt.Errorf("checkpoint directory %s: unknown scheme %q; name a directory, a file:// URL or an s3:// URL", at, scheme)
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
