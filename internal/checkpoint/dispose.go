package checkpoint

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// ErrNotOurs: a directory is not that of a checkpoint or savepoint alone, so that it is not deleted.
var ErrNotOurs = errors.New("not the directory of a checkpoint or savepoint")

// CheckDisposable says why the directory with the given name must not be deleted. files are those in it, metadata the content of its
// _metadata, nil if it has none: what a deletion has left behind may be deleted again. A damaged checkpoint may be deleted too, but nothing that
// holds a file that no checkpoint has.
func CheckDisposable(name string, files []string, metadata []byte) error {
	var referred []string
	if metadata != nil {
		md, err := DecodeMetadata(metadata)
		if errors.Is(err, ErrNotMetadata) {
			return fmt.Errorf("%w: its %s is none: %w", ErrNotOurs, MetadataFile, err)
		}
		if err == nil {
			referred = md.Files()
		}
	} else if _, chk := chkID(name); !chk && !IsSavepointDir(name) {
		return fmt.Errorf("%w: it has no %s", ErrNotOurs, MetadataFile)
	}
	for _, file := range files {
		_, state := ParseStateFile(path.Base(file))
		if file != MetadataFile && !state && !slices.Contains(referred, file) {
			return fmt.Errorf("%w: file %s in it belongs to no checkpoint; move it away first", ErrNotOurs, file)
		}
	}
	return nil
}
