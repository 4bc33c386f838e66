package file

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/weirstream/weir/stream"
)

// Lines reads text files line by line, without the line ends (LF or CRLF) and without a byte order mark.
//
// pattern is a file, a directory (all files in it that are not hidden and not unfinished output), a glob, or several of these separated by commas.
// Files that are gzip are decompressed as one split; plain files are split by byte range.
func Lines(pattern string, opts ...Option) stream.Source[string] {
	s := &source[string]{pattern: pattern, o: newOptions(opts), newFormat: newLineFormat}
	if s.err = s.o.validate(); s.err == nil && s.o.multiLine {
		s.err = fmt.Errorf("file.MultiLine is for CSV: a line has one line")
	}
	return s
}

// CSV reads rows (RFC 4180, with a header line) into structs. A column goes into the exported field that has its name in a tag `csv:"name"`, or
// without a tag into the field of that name in upper or lower case. Other columns are ignored, and so are fields with the tag `csv:"-"`;
// a field without a column refuses the job. Fields are strings, numbers, booleans, time.Time (RFC 3339; always UTC) and time.Duration (as 1m30s).
// Blank lines are no rows.
//
// For pattern see Lines.
func CSV[T any](pattern string, opts ...Option) stream.Source[T] {
	s := &source[T]{pattern: pattern, o: newOptions(opts), newFormat: newRowFormat[T]}
	if s.err = s.o.validate(); s.err == nil {
		_, s.err = fieldsOf(reflect.TypeFor[T]())
	}
	return s
}

// source is the common part of Lines and CSV.
type source[T any] struct {
	pattern   string
	o         options
	err       error // of the options or the type
	newFormat func(o *options) (format[T], error)
}

// format is how a reader makes records of the lines of a file.
type format[T any] interface {
	// header reads what comes before the records of a file and returns where they start.
	header(t *text, o *options) (int64, error)
	// decode makes a record. no: the line holds none.
	decode(line []byte, v *T) (ok bool, bad *rowError)
}

// Splits implements stream.Source.
func (s *source[T]) Splits(_ context.Context, parallelism int) ([][]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	files, err := find(s.pattern)
	if err != nil {
		return nil, err
	}
	f, err := s.newFormat(&s.o)
	if err != nil {
		return nil, err
	}
	return planSplits(files, parallelism, &s.o, func(t *text) (int64, error) { return f.header(t, &s.o) })
}

// Open implements stream.Source.
func (s *source[T]) Open(env stream.SourceEnv) (stream.Reader[T], error) {
	if s.err != nil {
		return nil, stream.Permanent(s.err)
	}
	splits, err := decodeSplits(env.Splits)
	if err != nil {
		return nil, err
	}
	f, err := s.newFormat(&s.o)
	if err != nil {
		return nil, stream.Permanent(err)
	}
	return newReader(&s.o, f, splits), nil
}

type lineFormat struct{}

func newLineFormat(*options) (format[string], error) { return lineFormat{}, nil }

func (lineFormat) header(t *text, _ *options) (int64, error) { return t.skipMark() }

func (lineFormat) decode(line []byte, v *string) (bool, *rowError) {
	*v = string(line)
	return true, nil
}

type rowFormat[T any] struct{ rows *rowDecoder }

func newRowFormat[T any](o *options) (format[T], error) {
	rows, err := newRowDecoder(reflect.TypeFor[T](), o.multiLine)
	return rowFormat[T]{rows}, err
}

func (f rowFormat[T]) header(t *text, o *options) (int64, error) { return f.rows.header(t, o) }

func (f rowFormat[T]) decode(line []byte, v *T) (bool, *rowError) {
	if len(line) == 0 {
		return false, nil
	}
	return true, f.rows.decode(line, unsafe.Pointer(v))
}
