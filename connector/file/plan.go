package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/stream"
)

// headerReader checks the beginning of a file and returns where its records start.
type headerReader func(t *text) (dataStart int64, err error)

// planSplits cuts files into splits. header runs for each file, so that a file that cannot be read refuses the submission.
func planSplits(files []string, parallelism int, o *options, header headerReader) ([][]byte, error) {
	var whole []split
	var plain int64
	for _, path := range files {
		s, err := planFile(path, header)
		if err != nil {
			return nil, err
		}
		if s.start == s.end {
			continue
		}
		if whole = append(whole, s); !s.gzip {
			plain += s.end - s.start
		}
	}
	size := o.splitSize
	if !o.splitSizeSet {
		pieces := int64(max(parallelism, 1) * splitsPerSubtask)
		size = max(MinSplitSize, (plain+pieces-1)/pieces)
	}
	var out [][]byte
	for _, s := range whole {
		pieces, err := s.cut(size, o)
		if err != nil {
			return nil, err
		}
		for _, p := range pieces {
			out = append(out, p.encode())
		}
		if len(out) > MaxSplits {
			return nil, fmt.Errorf("input has more than %d splits: make file.SplitSize larger than %d, or the files fewer", MaxSplits, size)
		}
	}
	return out, nil
}

// planFile makes one split of a file.
func planFile(path string, header headerReader) (s split, err error) {
	if len(path) > maxPath {
		return split{}, fmt.Errorf("input: a path of %d bytes is longer than %d", len(path), maxPath)
	}
	t, err := openText(path)
	if err != nil {
		return split{}, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	start, err := header(t)
	if err != nil {
		return split{}, err
	}
	s = split{path: path, id: t.id, gzip: t.gzip, start: start, next: start, end: unknownEnd}
	if !t.gzip {
		s.end = t.id.size
	}
	return s, nil
}

// cut divides a split at line starts into pieces of about size bytes. A line belongs to the piece in whose size bytes it starts.
func (s split) cut(size int64, o *options) (pieces []split, err error) {
	if s.gzip || o.multiLine || s.end-s.start <= size {
		return []split{s}, nil
	}
	if (s.end-s.start)/size > MaxSplits {
		return nil, fmt.Errorf("input %s has more than %d splits: make file.SplitSize larger than %d", s.path, MaxSplits, size)
	}
	t, err := openText(s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	start, buf := s.start, make([]byte, headSize)
	for edge := s.start + size; start < s.end; edge += size {
		if edge <= start {
			continue // a long line: it has passed this edge
		}
		end := s.end
		if edge < s.end {
			if end, err = t.lineStart(edge, buf); err != nil {
				return nil, err
			}
		}
		if end > start {
			pieces = append(pieces, split{path: s.path, id: s.id, start: start, next: start, end: end})
			start = end
		}
	}
	return pieces, nil
}

// lineStart returns the first start of a line at or behind offset, or the size of the file. offset is positive; buf is for reading.
func (t *text) lineStart(offset int64, buf []byte) (int64, error) {
	at := offset - 1 // a line end there makes offset a start
	for at < t.id.size {
		n, err := t.file.ReadAt(buf[:min(int64(len(buf)), t.id.size-at)], at)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		at += int64(n)
		if err != nil {
			return 0, t.readError(at, err)
		}
	}
	return t.id.size, nil
}

// decodeSplits reads the splits of a subtask, in the order of files and offsets: a restore may have mixed them.
func decodeSplits(items [][]byte) ([]split, error) {
	splits := make([]split, 0, len(items))
	for _, item := range items {
		s, err := decodeSplit(item)
		if err != nil {
			return nil, stream.Permanent(err)
		}
		splits = append(splits, s)
	}
	slices.SortStableFunc(splits, func(a, b split) int {

		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.start, b.start))
	})
	return splits, nil
}
