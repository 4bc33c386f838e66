package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/storage"
)

// How files are read. What is asked for in one piece of readDirect bytes or more is read as that, in parts beside each other. Smaller pieces come out of
// windows, each read in one request: the first with the opening of the file, the others longer and longer as long as the reading goes on where it was.
const (
	firstWindow = 64 << 10
	minWindow   = 256 << 10
	maxWindow   = 4 << 20
	keptWindows = 2 // of each open file
	readDirect  = 1 << 20
	readPart    = 8 << 20
)

var errReplaced = errors.New("the file was replaced while it was read")

// file is an open file. Its reads end with the context that it was opened with.
type file struct {
	client *Client
	ctx    context.Context
	name   string
	key    string
	size   int64
	etag   string

	mu struct {
		sync.Mutex
		windows []window // the latest is the last
		next    int      // size of a window that goes on where the latest ends
	}
}

// window is a part of a file in memory; it is never changed.
type window struct {
	offset int64
	data   []byte
}

func (w window) end() int64 { return w.offset + int64(len(w.data)) }

// Open opens a file, and reads its beginning.
func (s *Storage) Open(ctx context.Context, name string) (storage.File, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, describe("open", name, err)
	}
	f := &file{client: s.client, ctx: ctx, name: name, key: key}
	f.mu.next = minWindow
	first := window{}
	r := s.client.call(ctx, OpGet, s.client.pacing.bodyTime(firstWindow), func(ctx context.Context) error {
		var err error
		first.data, f.size, f.etag, err = s.client.get(ctx, key, 0, make([]byte, firstWindow), "")
		return err
	})
	first.data = bytes.Clone(first.data) // most files are shorter than what there is room for
	if code(r.err) == "InvalidRange" {   // of an empty object there is no first byte
		var info minio.ObjectInfo
		info, r.err = s.client.head(ctx, key)
		f.size, f.etag = info.Size, info.ETag
	}
	if r.err != nil {
		return nil, describe("open", name, r.err)
	}
	f.mu.windows = []window{first}
	return f, nil
}

// get reads a range of an object into p, all of it that is there, in one request. It gives the size of the whole object too.
func (c *Client) get(ctx context.Context, key string, offset int64, p []byte, etag string) (data []byte, size int64, tag string, err error) {
	var opts minio.GetObjectOptions
	err = opts.SetRange(offset, offset+int64(len(p))-1)
	if err == nil && etag != "" {
		err = opts.SetMatchETag(etag)
	}
	if err != nil {
		return nil, 0, "", fmt.Errorf("%w (%w)", err, errNotRetried)
	}
	body, info, header, err := c.core.GetObject(ctx, c.bucket, key, opts)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { _ = body.Close() }() // it was only read
	size, err = wholeSize(header, info.Size)
	if err != nil {
		return nil, 0, "", err
	}
	if info.Size > int64(len(p)) {
		return nil, 0, "", fmt.Errorf("the object store does not know ranges: it gives %d bytes and not %d (%w)", info.Size, len(p), errNotRetried)
	}
	data = p[:info.Size]
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, 0, "", err
	}
	c.stats.bytes(info.Size, 0)
	return data, size, info.ETag, nil
}

// wholeSize is the size of the object of which an answer has a part.
func wholeSize(header http.Header, length int64) (int64, error) {
	text := header.Get("Content-Range")
	if text == "" {
		return length, nil
	}
	_, total, ok := strings.Cut(text, "/")
	size, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("the answer has a range that cannot be read: %q", text)
	}
	return size, nil
}

// Size is the length of the file.
func (f *file) Size() int64 { return f.size }

// Close forgets what was read.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.windows = nil
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, describe("read", f.name, fmt.Errorf("offset %d is negative", off))
	}
	var end error
	if rest := f.size - off; int64(len(p)) > rest {
		p, end = p[:max(rest, 0)], io.EOF
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if w, ok := f.cached(at); ok {
			n += copy(p[n:], w.data[at-w.offset:])
			continue
		}
		if len(p)-n >= readDirect {
			if err := f.readParts(p[n:], at); err != nil {
				return n, describe("read", f.name, err)
			}
			return len(p), end
		}
		if err := f.readWindow(at); err != nil {
			return n, describe("read", f.name, err)
		}
	}
	return n, end
}

// cached finds the window with the byte at an offset.
func (f *file) cached(at int64) (window, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.mu.windows {
		if at >= w.offset && at < w.end() {
			return w, true
		}
	}
	return window{}, false
}

// readWindow reads a window that begins at an offset. Several may do so at once.
func (f *file) readWindow(at int64) error {
	f.mu.Lock()
	size := minWindow
	if n := len(f.mu.windows); n > 0 && f.mu.windows[n-1].end() == at {
		size = f.mu.next
	}
	f.mu.Unlock()
	w := window{offset: at, data: make([]byte, min(int64(size), f.size-at))}
	if err := f.readRange(f.ctx, w.data, at); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.windows = append(f.mu.windows, w)
	if len(f.mu.windows) > keptWindows {
		f.mu.windows = f.mu.windows[len(f.mu.windows)-keptWindows:]
	}
	f.mu.next = min(2*size, maxWindow)
	return nil
}

// readParts reads a long range in parts beside each other.
func (f *file) readParts(p []byte, at int64) error {
	g, ctx := errgroup.WithContext(f.ctx)
	g.SetLimit(maxPartReads)
	for begin := 0; begin < len(p); begin += readPart {
		part := p[begin:min(begin+readPart, len(p))]
		g.Go(func() error { return f.readRange(ctx, part, at+int64(begin)) })
	}
	return g.Wait()
}

// readRange fills p.
func (f *file) readRange(ctx context.Context, p []byte, at int64) error {
	if err := take(ctx, f.client.reads); err != nil {
		return err
	}
	defer func() { <-f.client.reads }()
	r := f.client.call(ctx, OpGet, f.client.pacing.bodyTime(int64(len(p))), func(ctx context.Context) error {
		data, _, _, err := f.client.get(ctx, f.key, at, p, f.etag)
		if err == nil && len(data) != len(p) {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	if code(r.err) == minio.PreconditionFailed {
		return errReplaced
	}
	return r.err
}
