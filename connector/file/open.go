package file

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strings"

	"github.com/weirstream/weir/stream"
)

// text is an open file: its bytes as stored, or decompressed.
type text struct {
	path string
	file *os.File
	id   identity
	gzip bool
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	gzipMagic  = []byte{0x1f, 0x8b}
)

const byteOrderMark = "\ufeff" // of UTF-8

// openText opens a file and takes its identity. The first bytes decide whether it is gzip; a name that says gzip must not be wrong.
func openText(path string) (*text, error) {
	f, err := os.Open(path)
	if err != nil {
		err = fmt.Errorf("input: %w", err)
		if isGone(err) {
			err = stream.Permanent(err)
		}
		return nil, err
	}
	t := &text{path: path, file: f}
	if err := t.identify(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func (t *text) identify() error {
	info, err := t.file.Stat()
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	head := make([]byte, headSize)
	n, err := t.file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("input: %w", err)
	}
	head = head[:n]
	t.id = identity{size: info.Size(), head: crc32.Checksum(head, castagnoli)}
	t.gzip = bytes.HasPrefix(head, gzipMagic)
	if !t.gzip && strings.HasSuffix(t.path, ".gz") {
		return stream.Permanent(fmt.Errorf("input %s is named .gz but is not gzip", t.path))
	}
	return nil
}

// reader reads the text from offset to end. Of gzip, everything before offset is decompressed and dropped.
func (t *text) reader(offset, end int64) (io.Reader, error) {
	if !t.gzip {
		return io.NewSectionReader(t.file, offset, end-offset), nil
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(io.NewSectionReader(t.file, 0, math.MaxInt64), readSize))
	if err != nil {
		return nil, t.readError(0, err)
	}
	if n, err := io.CopyN(io.Discard, z, offset); err != nil {
		return nil, t.readError(n, err)
	}
	return z, nil
}

// readError names the file; damage is permanent, trouble with the disk is not.
func (t *text) readError(offset int64, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return stream.Permanent(fmt.Errorf("input %s: damaged gzip behind byte %d of the text: %w", t.path, offset, err))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return stream.Permanent(fmt.Errorf("input %s: ends too early, at byte %d of the text", t.path, offset))
	}
	return fmt.Errorf("input %s: %w", t.path, err)
}

// skipMark returns the offset behind a byte order mark.
func (t *text) skipMark() (int64, error) {
	r, err := t.reader(0, int64(len(byteOrderMark)))
	if err != nil {
		return 0, err
	}
	head, err := io.ReadAll(io.LimitReader(r, int64(len(byteOrderMark))))
	if err != nil {
		return 0, t.readError(0, err)
	}
	if string(head) == byteOrderMark {
		return int64(len(head)), nil
	}
	return 0, nil
}

// countLines counts the line ends before offset.
func (t *text) countLines(offset int64) (int64, error) {
	r, err := t.reader(0, offset)
	if err != nil {
		return 0, err
	}
	r = io.LimitReader(r, offset)
	buf := make([]byte, readSize)
	var lines int64
	for {
		n, err := r.Read(buf)
		lines += int64(bytes.Count(buf[:n], newline))
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return 0, t.readError(0, err)
		}
	}
}

func (t *text) close() error { return t.file.Close() }
