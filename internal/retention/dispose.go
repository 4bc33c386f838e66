package retention

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
)

// ErrNotOurs: a directory is not that of a checkpoint or savepoint alone, so that it is not deleted.
var ErrNotOurs = errors.New("not the directory of a checkpoint or savepoint")

// CheckDisposable says why the directory with the given name must not be deleted. files are those in it, metadata the content of its
// _metadata, nil if it has none: what a deletion has left behind may be deleted again. A damaged checkpoint may be deleted too, but nothing that
// holds a file that no checkpoint has.
func CheckDisposable(name string, files []string, metadata []byte) error {
	var referred []string
	if metadata != nil {
		md, err := checkpoint.DecodeMetadata(metadata)
		if errors.Is(err, checkpoint.ErrNotMetadata) {
			return fmt.Errorf("%w: its %s is none: %w", ErrNotOurs, checkpoint.MetadataFile, err)
		}
		if err == nil {
			referred = md.Files()
		}
	} else if _, _, chk := checkpoint.ParseDir("j/" + name); !chk && !checkpoint.IsSavepointDir(name) {
		return fmt.Errorf("%w: it has no %s", ErrNotOurs, checkpoint.MetadataFile)
	}
	for _, file := range files {
		if file != checkpoint.MetadataFile && !isStateFile(path.Base(file)) && !slices.Contains(referred, file) {
			return fmt.Errorf("%w: file %s in it belongs to no checkpoint; move it away first", ErrNotOurs, file)
		}
	}
	return nil
}

// Unshared are the shared files of a checkpoint that go with it: those that none of the others beside it refers to. What one of them refers to that
// cannot be read, nil, is not known: then none.
func Unshared(md *checkpoint.Metadata, others []*checkpoint.Metadata) []string {
	files := md.SharedFiles()
	for _, other := range others {
		if other == nil {
			return nil
		}
		kept := other.SharedFiles()
		files = slices.DeleteFunc(files, func(f string) bool {
			_, referred := slices.BinarySearch(kept, f)
			return referred
		})
	}
	return files
}
