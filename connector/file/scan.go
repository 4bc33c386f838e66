package file

import (
	"bytes"
	"errors"
	"io"
)

// readSize is how many bytes are asked of a file at once.
const readSize = 64 << 10

var (
	newline = []byte{'\n'}
	quote   = []byte{'"'}
)

// scanner cuts a text into records: lines, or with multiLine lines joined while a quoted field is open.
type scanner struct {
	src       io.Reader
	buf       []byte
	pos, end  int // unread part of buf
	eof       bool
	limit     int // longest record in bytes, without its line end
	multiLine bool

	offset int64 // of buf[pos] in the text
	lines  int64 // line ends passed
}

// newScanner returns a scanner with a buffer that it grows as needed.
func newScanner(buf []byte, o *options) *scanner {
	return &scanner{buf: buf, limit: o.maxLine, multiLine: o.multiLine}
}

// start begins another text, or part of it, whose first byte has the given offset and number of line ends before it.
func (s *scanner) start(src io.Reader, offset, lines int64) {
	s.src, s.pos, s.end, s.eof, s.offset, s.lines = src, 0, 0, false, offset, lines
}

// next returns a record without its line end, LF or CRLF; it is valid until the next call. Of a record that is longer than the limit, next
// returns the beginning and cut. After the last record the error is io.EOF; a text without a line end at its end has a last line all the same.
func (s *scanner) next() (record []byte, cut bool, err error) {
	if !s.multiLine {
		// The common case: the whole line is in the buffer.
		if i := bytes.IndexByte(s.buf[s.pos:s.end], '\n'); i >= 0 && i <= s.limit {
			record = s.buf[s.pos : s.pos+i]
			s.advance(i+1, 1)
			return trimCR(record), false, nil
		}
	}
	size, end, err := s.find()
	if err != nil {
		return nil, false, err
	}
	record = s.buf[s.pos : s.pos+size]
	switch end {
	case atLineEnd:
		s.advance(size+1, 1+int64(bytes.Count(record, newline)))
	case atTextEnd:
		if size == 0 {
			return nil, false, io.EOF
		}
		s.advance(size, int64(bytes.Count(record, newline)))
	case nowhere:
		// The record is its first line: if only a quote is missing, the lines after it are fine.
		if i := bytes.IndexByte(record, '\n'); i >= 0 {
			s.advance(i+1, 1)
			return trimCR(record[:i]), size > s.limit, nil
		}
		record = append([]byte(nil), record[:min(size, s.limit)]...)
		if size <= s.limit {
			record = trimCR(record)
		}
		return record, size > s.limit, s.dropLine()
	}
	if record = trimCR(record); len(record) > s.limit {
		return record[:s.limit], true, nil
	}
	return record, false, nil
}

// recordEnd is where a record ends.
type recordEnd uint8

const (
	atLineEnd recordEnd = iota
	atTextEnd
	nowhere // it exceeds the limit, or the text ends in a quoted field
)

// find looks for the end of the record at pos and reads until it is in the buffer. size is the record's, or how much of it was looked at.
func (s *scanner) find() (size int, end recordEnd, err error) {
	quoted, seen := false, 0
	for {
		window := s.buf[s.pos:s.end]
		for {
			i := bytes.IndexByte(window[seen:], '\n')
			if i < 0 {
				break
			}
			if s.multiLine && bytes.Count(window[seen:seen+i], quote)%2 == 1 {
				quoted = !quoted
			}
			seen += i
			if !quoted {
				return seen, atLineEnd, nil
			}
			seen++
		}
		switch {
		case len(window) > s.limit+1:
			return len(window), nowhere, nil
		case s.eof && s.multiLine && quoted != (bytes.Count(window[seen:], quote)%2 == 1):
			return len(window), nowhere, nil
		case s.eof:
			return len(window), atTextEnd, nil
		}
		if err := s.fill(); err != nil {
			return 0, nowhere, err
		}
	}
}

// fill reads more behind the unread part, which moves to the front of a buffer that is large enough.
func (s *scanner) fill() error {
	if s.pos > 0 {
		copy(s.buf, s.buf[s.pos:s.end])
		s.pos, s.end = 0, s.end-s.pos
	}
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.src.Read(s.buf[s.end:])
	s.end += n
	if errors.Is(err, io.EOF) {
		s.eof = true
		return nil
	}
	return err
}

// dropLine passes the rest of a line that is too long, without keeping it.
func (s *scanner) dropLine() error {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:s.end], '\n'); i >= 0 {
			s.advance(i+1, 1)
			return nil
		}
		s.advance(s.end-s.pos, 0)
		if s.eof {
			return nil
		}
		if err := s.fill(); err != nil {
			return err
		}
	}
}

func (s *scanner) advance(n int, lines int64) {
	s.pos += n
	s.offset += int64(n)
	s.lines += lines
}

func trimCR(record []byte) []byte {
	if n := len(record); n > 0 && record[n-1] == '\r' {
		return record[:n-1]
	}
	return record
}
