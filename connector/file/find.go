package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Marks of output that is not final. Readers leave such files out.
const (
	inProgressMark = ".inprogress"
	pendingMark    = ".pending"
)

// find lists the files that a pattern means, as absolute paths: executors may have another working directory. The order is that of the pattern's
// parts and by name within each; a file that several parts name is read once.
func find(pattern string) ([]string, error) {
	parts := []string{pattern}
	if _, err := os.Stat(pattern); err != nil {
		parts = strings.Split(pattern, ",")
	}
	var files []string
	seen := map[string]bool{}
	for _, part := range parts {
		if part = strings.TrimSpace(part); part == "" {
			return nil, fmt.Errorf("input %q names no file", pattern)
		}
		found, err := findPart(part)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if f, err = filepath.Abs(f); err != nil {
				return nil, fmt.Errorf("input %s: %w", part, err)
			}
			if !seen[f] {
				seen[f] = true
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// findPart takes a name for what it is before it looks for a glob in it.
func findPart(part string) ([]string, error) {
	info, err := os.Stat(part)
	switch {
	case err == nil && info.IsDir():
		return findInDirectory(part)
	case err == nil && info.Mode().IsRegular():
		return []string{part}, nil
	case err == nil:
		return nil, fmt.Errorf("input %s is neither a file nor a directory", part)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("input: %w", err)
	case !strings.ContainsAny(part, `*?[`):
		return nil, fmt.Errorf("input %s: no such file or directory", part)
	}
	matches, err := filepath.Glob(part)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", part, err)
	}
	files, err := readable(matches)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("input %s matches no file", part)
	}
	return files, err
}

func findInDirectory(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	files, err := readable(paths)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("input directory %s has no files", dir)
	}
	return files, err
}

// readable keeps regular files that are neither hidden nor unfinished output, sorted.
func readable(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		name := filepath.Base(p)
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, inProgressMark) || strings.HasSuffix(name, pendingMark) {
			continue
		}
		info, err := os.Stat(p) // a link counts as what it points to
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		if info.Mode().IsRegular() {
			files = append(files, p)
		}
	}
	slices.SortFunc(files, strings.Compare)
	return files, nil
}

// isGone tells errors that a restart will not cure.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}
