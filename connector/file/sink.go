package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"unsafe"

	"github.com/weirstream/weir/stream"
)

// SinkOption changes how a sink writes.
type SinkOption func(*sinkOptions)

type sinkOptions struct{ headless bool }

// WithoutHeader leaves the header line out of CSV files.
func WithoutHeader() SinkOption { return func(o *sinkOptions) { o.headless = true } }

// ExactlyOnceCSV writes structs as CSV files into a directory, which is made if it is absent. Each file begins with a header of the names in the
// tags `csv:"name"`, or of the fields' names; fields with the tag `csv:"-"` are left out.
//
// Output is exactly once: a subtask writes one file for each checkpoint between which it had records, and the file gets its final name
// part-JOB-OPERATOR-SUBTASK-ATTEMPT-NUMBER.csv when the checkpoint is durable. Until then its name ends in .inprogress or .pending:
//
//	.inprogress --Prepare--> .pending (synced before the checkpoint is acknowledged) --Commit--> final
//
// The names keep the jobs, and the sinks of one job, that write into one directory apart.
func ExactlyOnceCSV[T any](dir string, opts ...SinkOption) stream.Sink[T] {
	var o sinkOptions
	for _, opt := range opts {
		opt(&o)
	}
	s := &sink[T]{dir: dir, extension: ".csv"}
	fields, err := fieldsOf(reflect.TypeFor[T]())
	if err != nil {
		s.err = err
		return s
	}
	rows := newRowEncoder(fields)
	if !o.headless {
		s.header = rows.header()
	}
	s.encode = func(dst []byte, v *T) ([]byte, error) { return rows.append(dst, unsafe.Pointer(v)), nil }
	return s
}

// ExactlyOnceLines writes strings as the lines of text files, in the way of ExactlyOnceCSV. A string with a line break in it is an error.
func ExactlyOnceLines(dir string) stream.Sink[string] {
	return &sink[string]{dir: dir, extension: ".txt", encode: appendLine}
}

func appendLine(dst []byte, v *string) ([]byte, error) {
	if strings.ContainsAny(*v, "\r\n") {
		return dst, stream.Permanent(fmt.Errorf("a line break in a record that should be one line: %.60q", *v))
	}
	return append(append(dst, *v...), '\n'), nil
}

// sink is the common part of the exactly-once sinks.
type sink[T any] struct {
	dir       string
	extension string
	header    []byte
	encode    func(dst []byte, v *T) ([]byte, error)
	err       error // of the type
}

// Check implements stream.Checker: the directory can be made and written to.
func (s *sink[T]) Check(context.Context) error {
	if s.err != nil {
		return s.err
	}
	if _, err := s.directory(); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".weir-check-*")
	if err != nil {
		return fmt.Errorf("output directory %s is not writable: %w", s.dir, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("output directory %s is not writable: %w", s.dir, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("output directory %s: %w", s.dir, err)
	}
	return nil
}

// directory makes the directory and returns its absolute path: a transaction may be committed by another process.
func (s *sink[T]) directory() (string, error) {
	if s.dir == "" {
		return "", fmt.Errorf("the output directory has no name")
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return "", fmt.Errorf("output directory %s: %w", s.dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("output directory %s cannot be made: %w", s.dir, err)
	}
	return dir, nil
}

// Open implements stream.Sink.
func (s *sink[T]) Open(env stream.SinkEnv) (stream.Writer[T], error) {
	if s.err != nil {
		return nil, stream.Permanent(s.err)
	}
	dir, err := s.directory()
	if err != nil {
		return nil, err
	}
	w := &writer[T]{sink: s, names: partNames{dir, env.JobID, env.Operator, env.Subtask, env.Attempt, s.extension}, parallelism: env.Parallelism}
	if err := w.names.validate(); err != nil {
		return nil, stream.Permanent(err)
	}
	return w, nil
}
