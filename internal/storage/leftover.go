package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Leftover is what a crash may leave behind, and List does not show: a file that was never published, or an empty directory.
type Leftover struct {
	Path    string
	Dir     bool
	ModTime time.Time
	Upload  *Upload // what it is in an object store, if it is one
}

// Upload is a file that is being sent to an object store in parts.
type Upload struct{ Name, ID string }

// Leftovers finds unfinished files and empty directories. Those of writers that are at work are among them.
func (l *Local) Leftovers(ctx context.Context) ([]Leftover, error) {
	var out []Leftover
	err := filepath.WalkDir(l.root, func(file string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil || file == l.root {
			return ignoreMissing(err)
		}
		if entry.IsDir() {
			if names, err := os.ReadDir(file); err != nil || len(names) > 0 {
				return ignoreMissing(err)
			}
		} else if !strings.HasPrefix(entry.Name(), TempPrefix) {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		out = append(out, Leftover{Path: filepath.ToSlash(file[len(l.root)+1:]), Dir: entry.IsDir(), ModTime: info.ModTime()})
		return nil
	})
	return out, describe("list", "leftovers", err)
}

// RemoveLeftover removes one of the Leftovers; a directory into which something was written meanwhile stays.
func (l *Local) RemoveLeftover(ctx context.Context, o Leftover) error {
	if err := context.Cause(ctx); err != nil {
		return describe("remove", o.Path, err)
	}
	if !filepath.IsLocal(o.Path) {
		return describe("remove", o.Path, errors.New("it is not below the root"))
	}
	file := filepath.Join(l.root, filepath.FromSlash(o.Path))
	l.dirs.forget(file)
	err := os.Remove(file)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return describe("remove", o.Path, ignoreMissing(err))
}
