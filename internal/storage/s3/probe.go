package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/minio/minio-go/v7"

	"github.com/weirstream/weir/internal/storage"
)

var errNoConditions = errors.New("the object store does not know conditional writes (If-None-Match), without which two job masters could publish the same checkpoint; use another store or a newer version of it")

// Try finds out whether all can be done below the prefix that will be needed: files are listed, written, created if they are not there, and removed.
// It leaves nothing behind, unless the process dies in it; a sweep finds that.
func (s *Storage) Try(ctx context.Context) error {
	if err := s.try(ctx); err != nil {
		return fmt.Errorf("bucket %s at %s cannot be used: %w%s", s.client.bucket, s.client.service.Endpoint, err, remedy(err))
	}
	return nil
}

func (s *Storage) try(ctx context.Context) error {
	if _, err := s.client.listPage(ctx, s.prefix, "", 1); err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	if _, err := s.client.listUploads(ctx, s.prefix+storage.TempPrefix); err != nil {
		return fmt.Errorf("list uploads: %w", err)
	}
	key := fmt.Sprintf("%s%sprobe-%016x", s.prefix, storage.TempPrefix, rand.Uint64())
	if err := s.client.tryConditions(ctx, key); err != nil {
		return errors.Join(err, s.client.remove(context.WithoutCancel(ctx), key))
	}
	if err := s.client.remove(ctx, key); err != nil {
		return fmt.Errorf("remove a file: %w", err)
	}
	return nil
}

// tryConditions creates a file twice.
func (c *Client) tryConditions(ctx context.Context, key string) error {
	probe := []byte("probe")
	first := c.put(ctx, key, probe, storage.CreateOnly)
	switch {
	case code(first.err) == minio.NotImplemented:
		return errNoConditions
	case first.err != nil && !(first.doubt && errors.Is(first.err, storage.ErrExists)):
		return fmt.Errorf("write a file: %w", first.err)
	}
	second := c.put(ctx, key, probe, storage.CreateOnly)
	switch {
	case errors.Is(second.err, storage.ErrExists):
		return nil
	case second.err == nil:
		return errNoConditions
	}
	return fmt.Errorf("write a file: %w", second.err)
}

// remedy says what to do about an error.
func remedy(err error) string {
	switch code(err) {
	case minio.NoSuchBucket:
		return "; make the bucket, or name another"
	case minio.AccessDenied:
		return "; let these credentials list, read, write and delete objects and uploads there"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken":
		return "; check the credentials of this process"
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "; name the region of the bucket with the setting region, or in AWS_REGION"
	}
	if errors.Is(err, storage.ErrUnreachable) {
		return "; check the setting endpoint and the network"
	}
	return ""
}
