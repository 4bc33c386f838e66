package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/retention"
)

// ErrUncertain is in the error of Storage.CreateFile when nobody knows whether the file was written.
var ErrUncertain = errors.New("it may have been written all the same")

// Storage is what is needed of a place where checkpoints are. Names are slash-separated and relative to its root.
type Storage interface {
	// MkdirAll makes a directory with its parents.
	MkdirAll(ctx context.Context, dir string) error
	// ReadFile returns the content of a file of at most limit bytes.
	ReadFile(ctx context.Context, name string, limit int64) ([]byte, error)
	// CreateFile publishes a whole file in one durable step; it is an error if there is another. ErrUncertain is in the error when the file may
	// be there all the same, and could not be asked for; with any other error it is not.
	CreateFile(ctx context.Context, name string, data []byte) error
	// Files lists the names of all files below dir, at any depth.
	Files(ctx context.Context, dir string) ([]string, error)
	// DiscardCheckpoint deletes dir with all that is in it, its metadata first.
	DiscardCheckpoint(ctx context.Context, dir string) error
	// Remove deletes a file; it is well when there is none.
	Remove(ctx context.Context, name string) error
	// RemoveAll removes a directory with all that is in it.
	RemoveAll(ctx context.Context, dir string) error
}

// Archive finds directories of checkpoints by their names.
type Archive struct {
	// Root is the storage of the checkpoint directory, whose location is At.
	Root Storage
	At   string
	// Open opens another directory by its location. The directory is made if it does not exist, but with mustExist that is an error.
	Open func(ctx context.Context, location string, mustExist bool) (Storage, error)
}

// Name is the name of the directory that somebody has given the path of; a path of its metadata will do.
func (a *Archive) Name(given string) string {
	dir := strings.TrimRight(given, "/")
	if parent, name := location.Split(dir); name == checkpoint.MetadataFile && parent != "" {
		dir = parent
	}
	if inside, ok := location.Below(a.At, dir); ok {
		return inside
	}
	return dir
}

// Location is a directory as people write it.
func (a *Archive) Location(dir string) string {
	if dir == "" || location.Is(dir) {
		return dir
	}
	return location.Join(a.At, dir)
}

// Files lists the files below dir, with names relative to it.
func (a *Archive) Files(ctx context.Context, dir string) ([]string, error) {
	s, in, err := a.inside(ctx, dir)
	if err != nil {
		return nil, err
	}
	names, err := s.Files(ctx, strings.TrimSuffix(in, "/"))
	names = slices.Clone(names)
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], in)
	}
	return names, err
}

// Read reads the metadata of the checkpoint in dir, and sees that its state files are there.
func (a *Archive) Read(ctx context.Context, dir string) (*checkpoint.Metadata, error) {
	data, err := a.metadata(ctx, dir)
	if err != nil {
		return nil, err
	}
	md, err := checkpoint.DecodeMetadata(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", checkpoint.MetadataFile, err)
	}
	names, err := a.Files(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := md.CheckFiles(names); err != nil {
		return md, err
	}
	return md, a.checkShared(ctx, dir, md)
}

// Write publishes the metadata of the checkpoint in dir; see Storage.CreateFile.
func (a *Archive) Write(ctx context.Context, dir string, md *checkpoint.Metadata) error {
	data, err := checkpoint.EncodeMetadata(md)
	if err != nil {
		return err
	}
	return a.publish(ctx, dir, data)
}

// MakeDurable publishes the metadata in dir once more: who wrote it may have died, or had an error, after it could be read and before it was sure
// to stay.
func (a *Archive) MakeDurable(ctx context.Context, dir string) error {
	data, err := a.metadata(ctx, dir)
	if err == nil {
		err = a.publish(ctx, dir, data)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be made durable: %w", a.Location(location.Join(dir, checkpoint.MetadataFile)), err)
	}
	return nil
}

// MakeDir makes a directory in another one, and gives its name.
func (a *Archive) MakeDir(ctx context.Context, parent, name string) (string, error) {
	s, err := a.Open(ctx, parent, false)
	if err != nil {
		return "", err
	}
	return location.Join(parent, name), s.MkdirAll(ctx, name)
}

// Discard deletes the checkpoint in dir, its metadata first.
func (a *Archive) Discard(ctx context.Context, dir string) error {
	return a.above(ctx, dir, func(s Storage, name string) error { return s.DiscardCheckpoint(ctx, name) })
}

// Dispose is Discard for a directory that a person has named: retention.ErrNotOurs is in the error if it is no checkpoint. With shared the files go
// too that only this one refers to; if a job that runs has its checkpoints beside it, it may be about to refer to them.
func (a *Archive) Dispose(ctx context.Context, dir string, shared bool) error {
	files, err := a.Files(ctx, dir)
	if err != nil {
		return err
	}
	var metadata []byte
	if slices.Contains(files, checkpoint.MetadataFile) {
		if metadata, err = a.metadata(ctx, dir); err != nil {
			return err
		}
	}
	_, name := location.Split(dir)
	if err := retention.CheckDisposable(name, files, metadata); err != nil {
		return err
	}
	if shared {
		return a.DiscardClaimed(ctx, dir)
	}
	return a.Discard(ctx, dir)
}

func (a *Archive) metadata(ctx context.Context, dir string) ([]byte, error) {
	s, in, err := a.inside(ctx, dir)
	if err != nil {
		return nil, err
	}
	return s.ReadFile(ctx, in+checkpoint.MetadataFile, checkpoint.MaxMetadataBytes)
}

func (a *Archive) publish(ctx context.Context, dir string, data []byte) error {
	return a.above(ctx, dir, func(s Storage, name string) error { return s.CreateFile(ctx, name+"/"+checkpoint.MetadataFile, data) })
}

// inside gives the storage of a directory, and what is in front of the names of its files there.
func (a *Archive) inside(ctx context.Context, dir string) (s Storage, prefix string, err error) {
	if !location.Is(dir) {
		return a.Root, dir + "/", nil
	}
	s, err = a.Open(ctx, dir, true)
	return s, "", err
}

// above calls f with a storage that dir is in, and its name there.
func (a *Archive) above(ctx context.Context, dir string, f func(s Storage, name string) error) error {
	if !location.Is(dir) {
		return f(a.Root, dir)
	}
	parent, name := location.Split(dir)
	s, err := a.Open(ctx, parent, true)
	if err != nil {
		return err
	}
	return f(s, name)
}
