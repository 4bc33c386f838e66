package inspect

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/location"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// Listed is a checkpoint or savepoint that was found in a directory.
type Listed struct {
	Location string
	Metadata *checkpoint.Metadata // nil when it cannot be read
	Problem  error                // why it is not whole; nil: it seems so
	Bytes    int64                // of its files
}

// List finds the checkpoints and savepoints below a directory, at any depth, by path. It sees whether their state files are there and long enough;
// Verify reads them.
func List(ctx context.Context, at string) ([]Listed, error) {
	files, err := schemes.OpenExisting(ctx, at)
	if err != nil {
		return nil, err
	}
	infos, err := files.List(ctx, "")
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, info := range infos {
		sizes[info.Path] = info.Size
	}
	var out []Listed
	for _, info := range infos {
		dir, name := path.Split(info.Path)
		if name != checkpoint.MetadataFile {
			continue
		}
		dir = strings.TrimSuffix(dir, "/")
		l := Listed{Location: location.Join(at, dir), Bytes: info.Size}
		s, err := read(ctx, files, dir, l.Location)
		if err != nil {
			l.Problem = err
		} else {
			l.Metadata = s.Metadata
			if l.Problem = shortFiles(s.Metadata, dir, sizes); l.Problem == nil {
				l.Problem = s.checkShared(ctx)
			}
			l.Bytes += s.sharedBytes()
		}
		for _, other := range infos {
			if d, n := path.Split(other.Path); d == dir+"/" && n != checkpoint.MetadataFile {
				l.Bytes += other.Size
			}
		}
		out = append(out, l)
	}
	return out, nil
}

// shortFiles finds a state file that is missing or shorter than the metadata says.
func shortFiles(md *checkpoint.Metadata, dir string, sizes map[string]int64) error {
	ends := md.FileEnds()
	for _, name := range md.Files() {
		end := ends[name]
		size, ok := sizes[path.Join(dir, name)]
		if !ok {
			return fmt.Errorf("state file %s is missing", name)
		}
		if size < end {
			return fmt.Errorf("state file %s is truncated: it has %d of %d bytes", name, size, end)
		}
	}
	return nil
}
