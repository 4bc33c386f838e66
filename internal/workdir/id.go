package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

const (
	idFile = "executor-id"
	// maxIDBytes is the longest id that is taken from a file.
	maxIDBytes = 255
)

// ID is the name of the executor whose directory this is: the one that was written down when it was asked for first, which was fresh then. So the
// executor has the same name after a restart, and what it left in Local is asked of it again.
func (d *Dir) ID(fresh string) (string, error) {
	root, err := d.root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(root, idFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, writeID(root, file, fresh)
	}
	if err != nil {
		return "", unusable(root, err)
	}
	id := strings.TrimSpace(string(data))
	if id == "" || len(id) > maxIDBytes || strings.ContainsFunc(id, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("%s holds no name of an executor: remove it, and the executor takes a new name, or give one with --id", file)
	}
	return id, nil
}

// writeID makes the file appear whole.
func writeID(root, file, id string) error {
	temp := file + ".tmp"
	if err := os.WriteFile(temp, []byte(id+"\n"), 0o644); err != nil {
		return unusable(root, err)
	}
	if err := os.Rename(temp, file); err != nil {
		return unusable(root, err)
	}
	return nil
}
