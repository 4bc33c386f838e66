package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/weirstream/weir/internal/storage"
)

// maxKeyBytes is how long a key can be.
const maxKeyBytes = 1024

// Storage is a storage.Storage below a prefix of a bucket.
type Storage struct {
	client *Client
	prefix string // with a slash at its end, or empty
}

// Exists tells whether anything is below the prefix, finished or not: that is when a directory is there.
func (s *Storage) Exists(ctx context.Context) (bool, error) {
	page, err := s.client.listPage(ctx, s.prefix, "", 1)
	if err != nil || len(page) > 0 {
		return err == nil, describe("look into", s.client.bucket+"/"+s.prefix, err)
	}
	uploads, err := s.client.listUploads(ctx, s.prefix)
	return len(uploads) > 0, describe("look into", s.client.bucket+"/"+s.prefix, err)
}

// WriteFile publishes data as a file. A CreateOnly of which no answer came is settled by what is found: a file with this content is this one.
// If that cannot be found out, storage.ErrUncertain is in the error.
func (s *Storage) WriteFile(ctx context.Context, name string, data []byte, mode storage.Mode) error {
	key, err := s.key(ctx, name)
	if err != nil {
		return describe("write", name, err)
	}
	if len(data) > maxObjectBytes {
		return describe("write", name, fmt.Errorf("%w: %d bytes, at most %d can be written in one step", storage.ErrTooLarge, len(data), maxObjectBytes))
	}
	r := s.client.put(ctx, key, data, mode)
	if errors.Is(r.err, storage.ErrExists) && r.doubt {
		found, err := s.client.readAll(ctx, key, int64(len(data)))
		switch {
		case err == nil && bytes.Equal(found, data):
			r.err = nil
		case err == nil, errors.Is(err, storage.ErrTooLarge):
			r.doubt = false // another was first
		default:
			r.err = fmt.Errorf("%w; then: %w", r.err, err)
		}
	}
	if r.err != nil && r.doubt {
		r.err = fmt.Errorf("%w: %w", storage.ErrUncertain, r.err)
	}
	return describe("write", name, r.err)
}

// maxObjectBytes is the longest object that a store takes in one request.
const maxObjectBytes = 5 << 30

// put writes an object in one request.
func (c *Client) put(ctx context.Context, key string, data []byte, mode storage.Mode) result {
	r := c.call(ctx, OpPut, c.pacing.bodyTime(int64(len(data))), func(ctx context.Context) error {
		opts := minio.PutObjectOptions{ContentType: contentType}
		if mode == storage.CreateOnly {
			opts.SetMatchETagExcept("*")
		}
		_, err := c.core.PutObject(ctx, c.bucket, key, bytes.NewReader(data), int64(len(data)), "", "", opts)
		if err == nil {
			c.stats.bytes(0, int64(len(data)))
		}
		return err
	})
	if r.doubt {
		c.unsettled.add(key, c.pacing.settle)
	}
	return r
}

const contentType = "application/octet-stream"

// Stat describes a file.
func (s *Storage) Stat(ctx context.Context, name string) (storage.Info, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return storage.Info{}, describe("look at", name, err)
	}
	info, err := s.client.head(ctx, key)
	if err != nil {
		return storage.Info{}, describe("look at", name, err)
	}
	return storage.Info{Path: name, Size: info.Size, ModTime: info.LastModified}, nil
}

func (c *Client) head(ctx context.Context, key string) (info minio.ObjectInfo, err error) {
	r := c.call(ctx, OpHead, c.pacing.try, func(ctx context.Context) error {
		var err error
		info, err = c.core.StatObject(ctx, c.bucket, key, minio.StatObjectOptions{})
		return err
	})
	return info, r.err
}

// ReadFile reads a file.
func (s *Storage) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, describe("read", name, err)
	}
	data, err := s.client.readAll(ctx, key, limit)
	return data, describe("read", name, err)
}

func (c *Client) readAll(ctx context.Context, key string, limit int64) (data []byte, err error) {
	r := c.call(ctx, OpGet, c.pacing.bodyTime(limit), func(ctx context.Context) error {
		body, info, _, err := c.core.GetObject(ctx, c.bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }() // it was only read
		if info.Size > limit {
			return fmt.Errorf("%w: %d bytes, at most %d are allowed (%w)", storage.ErrTooLarge, info.Size, limit, errNotRetried)
		}
		data = make([]byte, info.Size)
		_, err = io.ReadFull(body, data)
		if err == nil {
			c.stats.bytes(info.Size, 0)
		}
		return err
	})
	if r.err != nil {
		return nil, r.err
	}
	return data, nil
}

// MkdirAll does nothing: a directory is there as soon as a file is in it.
func (s *Storage) MkdirAll(ctx context.Context, dir string) error {
	_, err := s.key(ctx, dir)
	return describe("make directory", dir, err)
}

// key checks the name and gives the key of the object.
func (s *Storage) key(ctx context.Context, name string) (string, error) {
	if err := context.Cause(ctx); err != nil {
		return "", err
	}
	if err := storage.CheckPath(name); err != nil {
		return "", err
	}
	if n := len(s.prefix) + len(name); n > maxKeyBytes {
		return "", fmt.Errorf("its key has %d bytes, at most %d are possible", n, maxKeyBytes)
	}
	return s.prefix + name, nil
}

// name is the name of the file with a key, if it is one that this storage could have written.
func (s *Storage) name(key string) (string, bool) {
	name := strings.TrimPrefix(key, s.prefix)
	return name, storage.CheckPath(name) == nil
}

// describe names the operation and the file.
func describe(verb, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("%s %s: %w", verb, name, storage.ErrNotFound)
	case errors.Is(err, storage.ErrExists) && !errors.Is(err, storage.ErrUncertain):
		return fmt.Errorf("%s %s: %w", verb, name, storage.ErrExists)
	}
	return fmt.Errorf("%s %s: %w", verb, name, err)
}
