package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/weirstream/weir/internal/storage"
)

// maxParts is how many parts an object can have.
const maxParts = 10_000

// firstBuffer is what a file begins with in memory; most files of state are small.
const firstBuffer = 64 << 10

// abortTime bounds the try to abort an upload that nobody waits for: a sweep finds what is left. graceTime is how long parts that are on their way
// may go on when the file is given up: a store that gets the end of a part after the abort may keep the upload.
const (
	abortTime = 5 * time.Second
	graceTime = 3 * time.Second
)

var (
	errDone    = errors.New("the file was committed or aborted before")
	errAborted = errors.New("the file was aborted")
)

// Create begins a file. Its writer ends with ctx.
func (s *Storage) Create(ctx context.Context, name string) (storage.Writer, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, describe("create", name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	parted, cancelParts := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(graceTime, cancelParts) })
	return &writer{client: s.client, ctx: ctx, cancel: cancel, parted: parted, name: name, key: key}, nil
}

// writer gathers a part in memory. A file of one part is put in one request. Of a longer one each part is uploaded as soon as the next one begins,
// beside the goroutine that writes, but never more than maxPartUploads in all files together.
type writer struct {
	client *Client
	ctx    context.Context // of Create; uploads end with it
	cancel context.CancelCauseFunc
	parted context.Context // ends graceTime after ctx; requests with parts end with it
	name   string
	key    string
	buffer []byte
	size   int64
	upload string // id; empty: everything is in the buffer
	parts  int    // begun
	work   sync.WaitGroup
	done   bool

	mu struct {
		sync.Mutex
		uploaded []minio.CompletePart
		err      error // the first
	}
}

// Write appends to the file.
func (w *writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, describe("write", w.name, errDone)
	}
	written := 0
	for len(p) > 0 {
		if len(w.buffer) == w.client.service.PartBytes {
			if err := w.flush(); err != nil {
				w.fail(err)
				return written, describe("write", w.name, err)
			}
		}
		w.grow(len(p))
		n := min(len(p), cap(w.buffer)-len(w.buffer))
		w.buffer = append(w.buffer, p[:n]...)
		p, written, w.size = p[n:], written+n, w.size+int64(n)
	}
	return written, describe("write", w.name, w.failure())
}

// grow makes room in the buffer for some of n bytes, and doubles it up to the size of a part.
func (w *writer) grow(n int) {
	if len(w.buffer) < cap(w.buffer) {
		return
	}
	size := min(max(2*cap(w.buffer), firstBuffer, len(w.buffer)+n), w.client.service.PartBytes)
	if size == w.client.service.PartBytes {
		select {
		case b := <-w.client.buffers:
			w.buffer = append(b[:0], w.buffer...)
			return
		default:
		}
	}
	w.buffer = append(make([]byte, 0, size), w.buffer...)
}

// flush begins the upload of the buffer as the next part.
func (w *writer) flush() error {
	if err := w.failure(); err != nil {
		return err
	}
	if w.parts == maxParts {
		return fmt.Errorf("%w: it has more than %d parts of %d bytes; raise the setting %s of the location", storage.ErrTooLarge, maxParts, w.client.service.PartBytes, keyPartSize)
	}
	if w.upload == "" {
		id, err := w.client.beginUpload(w.ctx, w.key)
		if err != nil {
			return err
		}
		w.upload = id
	}
	if err := take(w.ctx, w.client.uploads); err != nil {
		return err
	}
	w.parts++
	number, data := w.parts, w.buffer
	w.buffer = nil
	w.work.Go(func() {
		defer func() { <-w.client.uploads }()
		part, r := w.uploadPart(number, data)
		if r.err != nil {
			w.fail(r.err)
			return
		}
		if !r.doubt { // else a connection that was given up may still read from it
			w.client.recycle(data)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.uploaded = append(w.mu.uploaded, part)
	})
	return nil
}

// recycle keeps the buffer of a whole part for the next one.
func (c *Client) recycle(b []byte) {
	if cap(b) != c.service.PartBytes {
		return
	}
	select {
	case c.buffers <- b:
	default:
	}
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.err == nil {
		w.mu.err = err
	}
}

func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.err
}

// Commit publishes the file.
func (w *writer) Commit() error {
	if w.done {
		return describe("commit", w.name, errDone)
	}
	defer w.Abort()
	return describe("commit", w.name, w.commit())
}

func (w *writer) commit() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if err := w.failure(); err != nil {
		return err
	}
	if w.upload == "" {
		return w.client.put(w.ctx, w.key, w.buffer, storage.Replace).err
	}
	err := w.flush()
	w.work.Wait()
	if err = errors.Join(w.failure(), err); err != nil {
		return err
	}
	if err := w.client.complete(w.ctx, w.key, w.upload, w.mu.uploaded, w.size); err != nil {
		return err
	}
	w.upload = ""
	return nil
}

// Abort forgets the file. It waits a little for the store.
func (w *writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.cancel(errAborted)
	w.work.Wait()
	w.buffer = nil
	if w.upload == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abortTime)
	defer cancel()
	_ = w.client.abort(ctx, w.key, w.upload) // a sweep finds it
}

func (c *Client) beginUpload(ctx context.Context, key string) (id string, err error) {
	r := c.call(ctx, OpUploadBegin, c.pacing.try, func(ctx context.Context) error {
		var err error
		id, err = c.core.NewMultipartUpload(ctx, c.bucket, key, minio.PutObjectOptions{ContentType: contentType})
		return err
	})
	return id, r.err
}

func (w *writer) uploadPart(number int, data []byte) (minio.CompletePart, result) {
	var part minio.ObjectPart
	c, size := w.client, int64(len(data))
	limit := c.pacing.bodyTime(size)
	r := c.call(w.ctx, OpUploadPart, limit, func(context.Context) error {
		ctx, cancel := context.WithTimeoutCause(w.parted, limit, errTryTime)
		defer cancel()
		var err error
		part, err = c.core.PutObjectPart(ctx, c.bucket, w.key, w.upload, number, bytes.NewReader(data), size, minio.PutObjectPartOptions{})
		if err == nil {
			c.stats.bytes(0, size)
		}
		return err
	})
	return minio.CompletePart{PartNumber: number, ETag: part.ETag}, r
}

// complete makes an object of the parts. A try of which no answer came may have done it; then some stores say at the next one that they know of no such
// upload, and the object tells.
func (c *Client) complete(ctx context.Context, key, id string, parts []minio.CompletePart, size int64) error {
	slices.SortFunc(parts, func(a, b minio.CompletePart) int { return a.PartNumber - b.PartNumber })
	r := c.call(ctx, OpUploadComplete, c.pacing.bodyTime(size), func(ctx context.Context) error {
		_, err := c.core.CompleteMultipartUpload(ctx, c.bucket, key, id, parts, minio.PutObjectOptions{})
		return err
	})
	if r.doubt {
		c.unsettled.add(key, c.pacing.settle)
	}
	if code(r.err) != minio.NoSuchUpload || !r.doubt {
		return r.err
	}
	info, err := c.head(ctx, key)
	if err != nil {
		return fmt.Errorf("%w; then: %w", r.err, err)
	}
	if want := etagOf(parts); info.Size != size || want != "" && strings.HasSuffix(info.ETag, fmt.Sprintf("-%d", len(parts))) && info.ETag != want {
		return r.err
	}
	return nil
}

// etagOf is the tag of an object that is made of parts; empty: the parts have tags of another kind.
func etagOf(parts []minio.CompletePart) string {
	sum := md5.New() // the protocol's
	for _, p := range parts {
		b, err := hex.DecodeString(strings.Trim(p.ETag, `"`))
		if err != nil || len(b) != md5.Size {
			return ""
		}
		_, _ = sum.Write(b) // never fails
	}
	return fmt.Sprintf("%x-%d", sum.Sum(nil), len(parts))
}
