// Package print is a sink that writes records as lines of text, for people to look at.
//
// Owns: the form of the lines.
//
// Promises: a record is one write of one line, also when several subtasks write to one place. The output is at-least-once: after a failure the
// records since the last checkpoint are printed again.
//
// Goroutines: none of its own.
//
// Start at: Sink.
package print

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/weirstream/weir/stream"
)

// Sink writes each record to w as a line: the subtask, "> ", and the record as format makes it; a nil format means fmt.Sprint. Line breaks
// in a record are kept.
func Sink[T any](w io.Writer, format func(T) string) stream.Sink[T] {
	if format == nil {
		format = func(v T) string { return fmt.Sprint(v) }
	}
	s := &sink[T]{format: format}
	s.mu.w = w
	return s
}

type sink[T any] struct {
	format func(T) string
	mu     struct {
		sync.Mutex
		w io.Writer
	}
}

// Open implements stream.Sink.
func (s *sink[T]) Open(env stream.SinkEnv) (stream.Writer[T], error) {
	return &writer[T]{sink: s, prefix: strconv.Itoa(env.Subtask) + "> "}, nil
}

// write is called by the tasks of all subtasks in this process.
func (s *sink[T]) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.mu.w.Write(line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

type writer[T any] struct {
	sink   *sink[T]
	prefix string
	buf    []byte
}

// Write implements stream.Writer.
func (w *writer[T]) Write(_ stream.Timestamp, v T) error {
	w.buf = append(append(w.buf[:0], w.prefix...), w.sink.format(v)...)
	w.buf = append(w.buf, '\n')
	return w.sink.write(w.buf)
}

// Flush implements stream.Writer: nothing is held back.
func (w *writer[T]) Flush() error { return nil }

// Close implements stream.Writer.
func (w *writer[T]) Close() error { return nil }
