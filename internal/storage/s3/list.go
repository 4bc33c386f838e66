package s3

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/weirstream/weir/internal/storage"
)

const (
	pageObjects = 1000    // of one request; the protocol allows no more
	maxListed   = 1 << 20 // objects or uploads of one listing
)

// List describes the files below dir. Objects whose keys are no names of files are not ours, and not shown.
func (s *Storage) List(ctx context.Context, dir string) ([]storage.Info, error) {
	prefix, err := s.below(ctx, dir)
	if err != nil {
		return nil, describe("list", dir, err)
	}
	var out []storage.Info
	err = s.client.each(ctx, prefix, func(page []minio.ObjectInfo) error {
		for _, o := range page {
			if name, ok := s.name(o.Key); ok {
				out = append(out, storage.Info{Path: name, Size: o.Size, ModTime: o.LastModified})
			}
		}
		return nil
	})
	if err != nil {
		return nil, describe("list", dir, err)
	}
	slices.SortFunc(out, func(a, b storage.Info) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// below is the prefix of all that is in a directory.
func (s *Storage) below(ctx context.Context, dir string) (string, error) {
	if dir == "" {
		return s.prefix, context.Cause(ctx)
	}
	key, err := s.key(ctx, dir)
	return key + "/", err
}

// each gives f all objects below a prefix, a page at a time.
func (c *Client) each(ctx context.Context, prefix string, f func(page []minio.ObjectInfo) error) error {
	last, seen := "", 0
	for {
		page, err := c.listPage(ctx, prefix, last, pageObjects)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := f(page); err != nil {
				return err
			}
			last = page[len(page)-1].Key
		}
		if len(page) < pageObjects {
			return nil
		}
		if seen += len(page); seen >= maxListed {
			return fmt.Errorf("more than %d objects are there", maxListed)
		}
	}
}

// listPage lists at most n objects behind the key after, in one request.
func (c *Client) listPage(ctx context.Context, prefix, after string, n int) (page []minio.ObjectInfo, err error) {
	r := c.call(ctx, OpList, c.pacing.try, func(ctx context.Context) error {
		page = page[:0]
		noOwner := false
		opts := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after, MaxKeys: n, FetchOwner: &noOwner}
		for o := range c.core.ListObjectsIter(ctx, c.bucket, opts) {
			if o.Err != nil {
				return o.Err
			}
			page = append(page, o)
			if len(page) == n {
				return nil
			}
		}
		return context.Cause(ctx) // the listing ends without an error when ctx does
	})
	return page, r.err
}

// upload is a multipart upload that is neither completed nor aborted.
type upload struct {
	minio.ObjectMultipartInfo
}

// uploads lists the uploads of all keys with a prefix.
func (c *Client) listUploads(ctx context.Context, prefix string) (out []upload, err error) {
	var key, id string
	for {
		var page minio.ListMultipartUploadsResult
		r := c.call(ctx, OpUploadList, c.pacing.try, func(ctx context.Context) error {
			var err error
			page, err = c.core.ListMultipartUploads(ctx, c.bucket, prefix, key, id, "", pageObjects)
			return err
		})
		if r.err != nil {
			return nil, r.err
		}
		for _, u := range page.Uploads {
			out = append(out, upload{u})
		}
		if !page.IsTruncated {
			return out, nil
		}
		if len(out) >= maxListed || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
			return nil, fmt.Errorf("the list of uploads does not end after %d", len(out))
		}
		key, id = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// Leftovers finds what was not finished: uploads, and what a try of the store has left. Those that are under way are among them.
func (s *Storage) Leftovers(ctx context.Context) ([]storage.Leftover, error) {
	list, err := s.client.listUploads(ctx, s.prefix)
	if err != nil {
		return nil, describe("list", "uploads", err)
	}
	var out []storage.Leftover
	for _, u := range list {
		name, ok := s.name(u.Key)
		if !ok {
			continue
		}
		sum := sha256.Sum256([]byte(u.UploadID))
		shown := path.Join(path.Dir(name), fmt.Sprintf("%s%s-%x", storage.TempPrefix, path.Base(name), sum[:4]))
		out = append(out, storage.Leftover{Path: shown, ModTime: u.Initiated, Upload: &storage.Upload{Name: name, ID: u.UploadID}})
	}
	page, err := s.client.listPage(ctx, s.prefix+storage.TempPrefix, "", pageObjects)
	for _, o := range page {
		out = append(out, storage.Leftover{Path: o.Key[len(s.prefix):], ModTime: o.LastModified})
	}
	return out, describe("list", "leftovers", err)
}

// RemoveLeftover removes one of the Leftovers.
func (s *Storage) RemoveLeftover(ctx context.Context, o storage.Leftover) error {
	if err := context.Cause(ctx); err != nil {
		return describe("remove", o.Path, err)
	}
	if o.Upload == nil {
		return describe("remove", o.Path, s.client.remove(ctx, s.prefix+o.Path))
	}
	return describe("remove", o.Path, s.client.abort(ctx, s.prefix+o.Upload.Name, o.Upload.ID))
}
