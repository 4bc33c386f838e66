package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/retention"
	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// sharedFiles opens the storage that the shared files beside a checkpoint are in, and says in which directory of it.
func (s *Stored) sharedFiles(ctx context.Context) (files storage.Storage, dir string, err error) {
	if s.dir != "" {
		return s.files, path.Join(path.Dir(s.dir), checkpoint.SharedDirName), nil
	}
	at := s.Location
	if location.Scheme(at) == "" {
		if at, err = filepath.Abs(at); err != nil {
			return nil, "", err
		}
	}
	parent, _ := location.Split(at)
	files, err = schemes.OpenExisting(ctx, location.Join(parent, checkpoint.SharedDirName))
	return files, "", err
}

// sharedSizes gives the sizes of the shared files beside the checkpoint, by one listing; nil if it refers to none.
func (s *Stored) sharedSizes(ctx context.Context) (map[string]int64, error) {
	if len(s.Metadata.SharedFiles()) == 0 {
		return nil, nil
	}
	files, dir, err := s.sharedFiles(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return map[string]int64{}, nil
	}
	if err != nil {
		return nil, err
	}
	infos, err := files.List(ctx, dir)
	out := make(map[string]int64, len(infos))
	for _, info := range infos {
		out[path.Base(info.Path)] = info.Size
	}
	return out, err
}

// checkShared reports a shared file that is missing or has another length.
func (s *Stored) checkShared(ctx context.Context) error {
	sizes, err := s.sharedSizes(ctx)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(sizes))
	for name := range sizes {
		names = append(names, name)
	}
	if err := s.Metadata.CheckShared(names); err != nil {
		return err
	}
	for _, f := range s.Metadata.BackendFiles() {
		if name, shared := f.Shared(); shared && sizes[name] != f.Size {
			return fmt.Errorf("file %s has %d bytes, recorded were %d", f.Path, sizes[name], f.Size)
		}
	}
	return nil
}

// sharedBytes is the size of the shared files that the checkpoint refers to, which others may refer to as well.
func (s *Stored) sharedBytes() (n int64) {
	seen := map[string]bool{}
	for _, f := range s.Metadata.BackendFiles() {
		if _, shared := f.Shared(); shared && !seen[f.Path] {
			seen[f.Path] = true
			n += f.Size
		}
	}
	return n
}

// checkFile reads a file of a state backend and compares it with what the metadata says.
func (s *Stored) checkFile(ctx context.Context, f checkpoint.SharedFile) error {
	files, dir, name := s.files, s.dir, f.Path
	if shared, ok := f.Shared(); ok {
		var err error
		if files, dir, err = s.sharedFiles(ctx); err != nil {
			return err
		}
		name = shared
	}
	file, err := files.Open(ctx, path.Join(dir, name))
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("file %s is missing", f.Path)
	}
	if err != nil {
		return fmt.Errorf("file %s cannot be read: %w", f.Path, err)
	}
	defer func() { _ = file.Close() }() // was only read
	if file.Size() != f.Size {
		return fmt.Errorf("file %s has %d bytes, recorded were %d", f.Path, file.Size(), f.Size)
	}
	sum := checkpoint.NewChecksum()
	if _, err := io.Copy(sum, io.NewSectionReader(file, 0, f.Size)); err != nil {
		return fmt.Errorf("file %s cannot be read: %w", f.Path, err)
	}
	if got := sum.Sum32(); got != f.CRC32C {
		return fmt.Errorf("file %s is damaged: %w: it is %08x, recorded was %08x", f.Path, checkpoint.ErrChecksum, got, f.CRC32C)
	}
	return nil
}

// unshared are the shared files that go with the checkpoint called name in a storage; see retention.Unshared. One that cannot be read has none.
func unshared(ctx context.Context, files storage.Storage, name string, metadata []byte) ([]string, error) {
	md, err := checkpoint.DecodeMetadata(metadata)
	if err != nil || len(md.SharedFiles()) == 0 {
		return nil, nil //nolint:nilerr // it is deleted all the same, and its files are for a sweep
	}
	infos, err := files.List(ctx, "")
	if err != nil {
		return nil, err
	}
	others, err := allMetadata(ctx, files, infos)
	if err != nil {
		return nil, err
	}
	var beside []*checkpoint.Metadata
	for dir, other := range others {
		if dir != name && path.Dir(dir) == "." {
			beside = append(beside, other)
		}
	}
	return retention.Unshared(md, beside), nil
}

// unmoved leaves the shared files out of orphans whose job has completed or deleted a checkpoint since the files were listed, by a second look at the job's
// directory. It may be a job that runs at a job master which this sweep knows nothing of; then a checkpoint that was not seen may refer to old files
// too. Of jobs that are known to run it is known what they may refer to.
func unmoved(ctx context.Context, files storage.Storage, facts *retention.SweepFacts, orphans []string) ([]string, error) {
	moved := map[string]bool{}
	out := orphans[:0:0]
	for _, name := range orphans {
		j, _, shared := checkpoint.ParseSharedPath(name)
		if _, live := facts.Live[j]; !shared || live {
			out = append(out, name)
			continue
		}
		dir := checkpoint.JobDir(j)
		if _, looked := moved[dir]; !looked {
			infos, err := files.List(ctx, dir)
			if err != nil {
				return nil, err
			}
			moved[dir] = !sameMetadata(infos, facts, dir)
		}
		if !moved[dir] {
			out = append(out, name)
		}
	}
	return out, nil
}

// sameMetadata reports whether the metadata in a directory is that which the facts know.
func sameMetadata(infos []storage.Info, facts *retention.SweepFacts, dir string) bool {
	known := 0
	for at := range facts.Metadata {
		if path.Dir(at) == dir {
			known++
		}
	}
	for _, info := range infos {
		at, name := path.Split(info.Path)
		if at = path.Clean(at); name != checkpoint.MetadataFile || path.Dir(at) != dir {
			continue
		}
		if _, ok := facts.Metadata[at]; !ok {
			return false
		}
		known--
	}
	return known == 0
}
