package s3

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// maxDeletes is how many requests of one RemoveAll run at a time.
const maxDeletes = 4

// Remove removes a file.
func (s *Storage) Remove(ctx context.Context, name string) error {
	key, err := s.key(ctx, name)
	if err == nil {
		err = s.client.unsettled.wait(ctx, key, false)
	}
	if err == nil {
		err = s.client.remove(ctx, key)
	}
	return describe("remove", name, err)
}

func (c *Client) remove(ctx context.Context, key string) error {
	r := c.call(ctx, OpDelete, c.pacing.try, func(ctx context.Context) error {
		return c.core.RemoveObject(ctx, c.bucket, key, minio.RemoveObjectOptions{})
	})
	if code(r.err) == minio.NoSuchKey {
		return nil
	}
	return r.err
}

// RemoveAll removes all files in a directory, and aborts the uploads to it.
func (s *Storage) RemoveAll(ctx context.Context, dir string) error {
	prefix, err := s.key(ctx, dir)
	if err == nil {
		err = s.client.removeAll(ctx, prefix+"/")
	}
	return describe("remove", dir, err)
}

func (c *Client) removeAll(ctx context.Context, prefix string) error {
	if err := c.unsettled.wait(ctx, prefix, true); err != nil {
		return err
	}
	if err := c.abortAll(ctx, prefix); err != nil { // first: a list of objects that is made afterwards has what was completed before
		return err
	}
	return c.each(ctx, prefix, func(page []minio.ObjectInfo) error { return c.removePage(ctx, page) })
}

// removePage removes objects in one request, or in one each if the store knows no other way.
func (c *Client) removePage(ctx context.Context, page []minio.ObjectInfo) error {
	r := c.call(ctx, OpDelete, c.pacing.try, func(ctx context.Context) error {
		results, err := c.core.RemoveObjectsWithIter(ctx, c.bucket, slices.Values(page), minio.RemoveObjectsOptions{})
		if err != nil {
			return err
		}
		for one := range results {
			if one.Err != nil {
				err = one.Err // one tells enough, and decides whether to try again
			}
		}
		return errors.Join(err, context.Cause(ctx))
	})
	var e *serverError
	if !errors.As(r.err, &e) || e.StatusCode != http.StatusNotImplemented && e.StatusCode != http.StatusMethodNotAllowed {
		return r.err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxDeletes)
	for _, o := range page {
		g.Go(func() error { return c.remove(ctx, o.Key) })
	}
	return g.Wait()
}

// maxAborts is how often an upload is aborted that does not go: a part of it may have come to its end after the abort.
const maxAborts = 3

// abortAll aborts the uploads of all keys with a prefix.
func (c *Client) abortAll(ctx context.Context, prefix string) error {
	for range maxAborts {
		list, err := c.listUploads(ctx, prefix)
		if err != nil || len(list) == 0 {
			return err
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(maxDeletes)
		for _, u := range list {
			g.Go(func() error { return c.abort(ctx, u.Key, u.UploadID) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// abort aborts an upload. One that is not there was aborted or completed before.
func (c *Client) abort(ctx context.Context, key, id string) error {
	r := c.call(ctx, OpUploadAbort, c.pacing.try, func(ctx context.Context) error {
		return c.core.AbortMultipartUpload(ctx, c.bucket, key, id)
	})
	if code(r.err) == minio.NoSuchUpload {
		return nil
	}
	return r.err
}
