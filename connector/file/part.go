package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// partNames gives names to the files of one attempt of a subtask.
type partNames struct {
	dir       string
	job       string
	operator  string
	subtask   int
	attempt   int
	extension string
}

func (n partNames) validate() error {
	if n.job == "" || n.job != filepath.Base(n.job) || n.operator == "" || n.operator != filepath.Base(n.operator) {
		return fmt.Errorf("job id %q and operator id %q cannot be part of a file name", n.job, n.operator)
	}
	return nil
}

// prefix is what the names of all attempts of all subtasks begin with.
func (n partNames) prefix() string { return "part-" + n.job + "-" + n.operator + "-" }

// final is the path under which output is visible.
func (n partNames) final(number int64) string {
	return filepath.Join(n.dir, fmt.Sprintf("%s%d-%d-%d%s", n.prefix(), n.subtask, n.attempt, number, n.extension))
}

// leftover is a file that is not final.
type leftover struct {
	path             string
	subtask, attempt int
	pending          bool
}

// leftovers lists the files of the operator that are not final, of all subtasks and attempts.
func (n partNames) leftovers() ([]leftover, error) {
	entries, err := os.ReadDir(n.dir)
	if err != nil {
		return nil, fmt.Errorf("output directory: %w", err)
	}
	var found []leftover
	for _, e := range entries {
		if l, ok := n.parse(e.Name()); ok {
			found = append(found, l)
		}
	}
	return found, nil
}

// parse takes a name apart if it is of this operator and not final. Operator ids may hold dashes, so exactly three numbers must follow the prefix.
func (n partNames) parse(name string) (leftover, bool) {
	l := leftover{path: filepath.Join(n.dir, name)}
	rest, ok := strings.CutSuffix(name, pendingMark)
	if l.pending = ok; !ok {
		if rest, ok = strings.CutSuffix(name, inProgressMark); !ok {
			return l, false
		}
	}
	rest, ok1 := strings.CutPrefix(rest, n.prefix())
	rest, ok2 := strings.CutSuffix(rest, n.extension)
	numbers := strings.Split(rest, "-")
	if !ok1 || !ok2 || len(numbers) != 3 {
		return l, false
	}
	var err1, err2, err3 error
	l.subtask, err1 = strconv.Atoi(numbers[0])
	l.attempt, err2 = strconv.Atoi(numbers[1])
	_, err3 = strconv.Atoi(numbers[2])
	return l, err1 == nil && err2 == nil && err3 == nil
}

// exists reports whether there is something at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// syncFile makes the contents of a closed file durable.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// transactionVersion is the first byte of an encoded transaction.
const transactionVersion = 1

// encodeTransaction writes: version, final path (uvarint length, bytes), size of the file (uvarint).
func encodeTransaction(final string, size int64) []byte {
	b := binary.AppendUvarint([]byte{transactionVersion}, uint64(len(final)))
	b = append(b, final...)
	return binary.AppendUvarint(b, uint64(size))
}

func decodeTransaction(b []byte) (final string, size int64, err error) {
	if len(b) == 0 {
		return "", 0, errors.New("prepared output: truncated")
	}
	if b[0] != transactionVersion {
		return "", 0, fmt.Errorf("prepared output: version %d is not known to this build, which reads version %d", b[0], transactionVersion)
	}
	d := decoder{rest: b[1:]}
	final = string(d.bytes(d.uvarint(maxPath)))
	size = d.uvarint(1<<63 - 1)
	if d.bad || len(d.rest) > 0 || !filepath.IsAbs(final) {
		return "", 0, errors.New("prepared output: damaged")
	}
	return final, size, nil
}
