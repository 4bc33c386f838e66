package file

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/weirstream/weir/connector/internal/pace"
	"github.com/weirstream/weir/stream"
)

// reader reads the splits of one subtask, one after the other.
type reader[T any] struct {
	o      *options
	format format[T]
	pace   pace.Pace
	parked *parking // nil unless rows are parked

	splits  []split // unfinished; the first is in work
	text    *text   // of the first split, or of the one before; nil: none is open
	opened  bool    // the first split is being scanned
	scan    *scanner
	base    int64 // number of the line at the split's start, 0: not counted yet
	record  T     // every record sets all that it is read into
	skipped int64
}

func newReader[T any](o *options, f format[T], splits []split) *reader[T] {
	r := &reader[T]{o: o, format: f, splits: splits, scan: newScanner(make([]byte, readSize), o), pace: pace.New(o.rate, time.Second)}
	if o.malformed.action == actionPark {
		r.parked = &parking{path: o.malformed.path}
	}
	return r
}

// Read implements stream.Reader. At most limit lines are read, whether they give records or not.
func (r *reader[T]) Read(out stream.Collector[T], limit int) (stream.Next, error) {
	if len(r.splits) == 0 {
		return stream.End, nil
	}
	limit, next := r.pace.Due(limit)
	emitted := 0
	defer func() { r.pace.Took(emitted) }()
	for range limit {
		line, cut, err := r.nextLine()
		if err != nil {
			return stream.More, err
		}
		if line == nil {
			return stream.End, nil
		}
		ok, bad := false, (*rowError)(nil)
		if cut {
			bad = &rowError{column: r.o.maxLine + 1, what: fmt.Sprintf("the line is longer than %d bytes (file.MaxLine)", r.o.maxLine)}
		} else {
			ok, bad = r.format.decode(line, &r.record)
		}
		if bad != nil {
			if err := r.malformed(line, bad); err != nil {
				return stream.More, err
			}
		} else if ok {
			emitted++
			if err := out.Collect(stream.NoTimestamp, r.record); err != nil {
				return stream.More, err
			}
		}
		r.splits[0].next, r.splits[0].lines = r.scan.offset, r.scan.lines
	}
	return next, nil
}

// nextLine returns the next line of the splits, or nil when all are finished.
func (r *reader[T]) nextLine() (line []byte, cut bool, err error) {
	for len(r.splits) > 0 {
		if !r.opened {
			if err := r.openSplit(); err != nil {
				return nil, false, err
			}
		}
		line, cut, err = r.scan.next()
		if err == nil {
			return line, cut, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, false, r.text.readError(r.scan.offset, err)
		}
		if s := r.splits[0]; !s.gzip && r.scan.offset != s.end {
			return nil, false, r.text.readError(r.scan.offset, io.ErrUnexpectedEOF)
		}
		r.splits, r.opened = r.splits[1:], false
	}
	return nil, false, r.closeText()
}

// openSplit begins the first split at its position.
func (r *reader[T]) openSplit() error {
	s := r.splits[0]
	if r.text == nil || r.text.path != s.path || r.text.id != s.id {
		if err := r.openText(s); err != nil {
			return err
		}
	}
	src, err := r.text.reader(s.next, s.end)
	if err != nil {
		return err
	}
	r.scan.start(src, s.next, s.lines)
	r.opened, r.base = true, 0
	return nil
}

// openText opens the file of a split, if it is still the one that was split.
func (r *reader[T]) openText(s split) error {
	if err := r.closeText(); err != nil {
		return err
	}
	t, err := openText(s.path)
	if err != nil {
		return err
	}
	r.text = t // Close closes it whatever follows
	if t.id != s.id || t.gzip != s.gzip {
		return stream.Permanent(fmt.Errorf("input %s has changed since the job was submitted (%d bytes then, %d now): "+
			"put the old file back, or submit the job again", s.path, s.id.size, t.id.size))
	}
	_, err = r.format.header(t, r.o)
	return err
}

func (r *reader[T]) closeText() error {
	t := r.text
	r.text = nil
	if t == nil {
		return nil
	}
	if err := t.close(); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	return nil
}

// malformed does what the job has chosen with the row that was read last.
func (r *reader[T]) malformed(row []byte, bad *rowError) error {
	if r.o.malformed.action == actionSkip {
		r.skipped++
		return nil
	}
	s := &r.splits[0]
	if r.base == 0 {
		before, err := r.text.countLines(s.start)
		if err != nil {
			return err
		}
		r.base = before + 1
	}
	place := fmt.Sprintf("%s:%d:%d", s.path, r.base+s.lines+int64(bad.line), bad.column)
	if r.parked == nil {
		return stream.Permanent(fmt.Errorf("%s: %s", place, bad.what))
	}
	r.skipped++
	return r.parked.add(place, bad.what, row)
}

// Skipped is how many malformed rows this reader has left out.
func (r *reader[T]) Skipped() int64 { return r.skipped }

// ProcessingBacklog implements stream.BacklogReporter.
func (r *reader[T]) ProcessingBacklog() bool { return r.o.backlog && len(r.splits) > 1 }

// Positions implements stream.Reader.
func (r *reader[T]) Positions() ([][]byte, error) {
	// A parked row must be as durable as the position behind it.
	if err := r.parked.sync(); err != nil {
		return nil, err
	}
	items := make([][]byte, len(r.splits))
	for i, s := range r.splits {
		items[i] = s.encode()
	}
	return items, nil
}

// Close implements stream.Reader.
func (r *reader[T]) Close() error {
	return errors.Join(r.closeText(), r.parked.close())
}
