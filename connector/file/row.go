package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/weirstream/weir/stream"
)

// rowError is what is wrong with a row, and where: column counts the bytes of its line from 1, line the lines of the row from 0.
type rowError struct {
	line   int
	column int
	what   string
}

// rowDecoder turns the rows of a file into structs. A decoder belongs to one reader.
type rowDecoder struct {
	fields    []field
	setters   []setter
	multiLine bool

	columns []column // of the file's header, in order
	cells   []cell   // of the row in work
	unquote []byte   // text of cells that had doubled quotes
}

// column is a column of the file; it has no setter if no field wants it.
type column struct {
	name   string
	set    setter
	offset uintptr
}

// cell is one value of a row: its text and where it starts in the row, for errors.
type cell struct {
	text []byte
	at   int
}

func newRowDecoder(t reflect.Type, multiLine bool) (*rowDecoder, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, err
	}
	d := &rowDecoder{fields: fields, multiLine: multiLine}
	for _, f := range fields {
		d.setters = append(d.setters, newSetter(f.typ))
	}
	return d, nil
}

// header reads the header of a file and finds the column of each field. It returns where the rows start.
func (d *rowDecoder) header(t *text, o *options) (dataStart int64, err error) {
	start, err := t.skipMark()
	if err != nil {
		return 0, err
	}
	r, err := t.reader(start, t.id.size)
	if err != nil {
		return 0, err
	}
	s := newScanner(make([]byte, headSize), o)
	s.start(r, start, 0)
	line, cut, err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		return 0, stream.Permanent(fmt.Errorf("input %s has no header line", t.path))
	case err != nil:
		return 0, t.readError(start, err)
	case cut:
		return 0, stream.Permanent(fmt.Errorf("input %s:1: the header is longer than %d bytes (file.MaxLine)", t.path, o.maxLine))
	}
	if bad := d.split(line); bad != nil {
		return 0, stream.Permanent(fmt.Errorf("input %s:1:%d: header: %s", t.path, bad.column, bad.what))
	}
	if err := d.match(); err != nil {
		return 0, stream.Permanent(fmt.Errorf("input %s: %w", t.path, err))
	}
	return s.offset, nil
}

// match finds the columns of the fields in the header that was split last.
func (d *rowDecoder) match() error {
	d.columns = make([]column, len(d.cells))
	var names []string
	for i, c := range d.cells {
		d.columns[i].name = string(c.text)
		names = append(names, d.columns[i].name)
	}
	for i, f := range d.fields {
		found := -1
		for c, name := range names {
			if name != f.name && (f.tagged || !strings.EqualFold(name, f.name)) {
				continue
			}
			if found >= 0 {
				return fmt.Errorf("two columns %q and %q are for the field %s", names[found], name, f.goName)
			}
			found = c
		}
		if found < 0 {
			return fmt.Errorf("no column %q for the field %s; the header has: %s", f.name, f.goName, strings.Join(names, ", "))
		}
		d.columns[found].set, d.columns[found].offset = d.setters[i], f.offset
	}
	return nil
}

// decode fills the struct at target.
func (d *rowDecoder) decode(row []byte, target unsafe.Pointer) *rowError {
	if bytes.IndexByte(row, '"') >= 0 {
		return d.decodeQuoted(row, target)
	}
	start, columns := 0, d.columns
	for i := range columns {
		end := start
		for end < len(row) && row[end] != ',' {
			end++
		}
		c := &columns[i]
		if c.set != nil {
			if err := c.set(unsafe.Add(target, c.offset), row[start:end]); err != nil {
				return d.badCell(row, i, cell{row[start:end], start}, err)
			}
		}
		if end == len(row) {
			if i+1 < len(columns) {
				return d.tooFew(row, i+1)
			}
			return nil
		}
		start = end + 1
	}
	return d.tooMany(row, start)
}

func (d *rowDecoder) decodeQuoted(row []byte, target unsafe.Pointer) *rowError {
	if bad := d.split(row); bad != nil {
		return bad
	}
	for i, c := range d.cells {
		if i == len(d.columns) {
			return d.tooMany(row, c.at)
		}
		col := &d.columns[i]
		if col.set == nil {
			continue
		}
		if err := col.set(unsafe.Add(target, col.offset), c.text); err != nil {
			return d.badCell(row, i, c, err)
		}
	}
	if len(d.cells) < len(d.columns) {
		return d.tooFew(row, len(d.cells))
	}
	return nil
}

// split cuts a row, which may have quotes, into d.cells.
func (d *rowDecoder) split(row []byte) *rowError {
	d.cells, d.unquote = d.cells[:0], d.unquote[:0]
	for at := 0; ; {
		start, text := at, []byte(nil)
		if at < len(row) && row[at] == '"' {
			var bad *rowError
			if text, at, bad = d.quoted(row, at); bad != nil {
				return bad
			}
		} else {
			if i := bytes.IndexByte(row[at:], ','); i >= 0 {
				at += i
			} else {
				at = len(row)
			}
			text = row[start:at]
			if i := bytes.IndexByte(text, '"'); i >= 0 {
				return badRow(row, start+i, `a quote inside a field that does not begin with one: write the field as "..." and the quote as ""`)
			}
		}
		d.cells = append(d.cells, cell{text, start})
		if at == len(row) {
			return nil
		}
		at++ // the comma
	}
}

// quoted reads a quoted cell and returns its text and the offset behind it.
func (d *rowDecoder) quoted(row []byte, start int) (text []byte, end int, bad *rowError) {
	first := len(d.unquote)
	for at := start + 1; ; {
		i := bytes.IndexByte(row[at:], '"')
		if i < 0 {
			what := "a quoted field has no closing quote"
			if !d.multiLine {
				what += " on its line; if fields hold line breaks, read the file with file.MultiLine()"
			}
			return nil, 0, badRow(row, start, what)
		}
		closing := at + i
		switch {
		case closing+1 < len(row) && row[closing+1] == '"': // a doubled quote is one
			d.unquote = append(d.unquote, row[at:closing+1]...)
			at = closing + 2
			continue
		case closing+1 < len(row) && row[closing+1] != ',':
			return nil, 0, badRow(row, closing+1, "text behind the closing quote of a field")
		case len(d.unquote) == first: // no doubled quote so far
			return row[at:closing], closing + 1, nil
		}
		d.unquote = append(d.unquote, row[at:closing]...)
		return d.unquote[first:len(d.unquote):len(d.unquote)], closing + 1, nil
	}
}

// maxQuotedCell is how many bytes of a bad cell an error shows.
const maxQuotedCell = 40

func (d *rowDecoder) badCell(row []byte, i int, c cell, err error) *rowError {
	shown, more := c.text, ""
	if len(shown) > maxQuotedCell {
		shown, more = shown[:maxQuotedCell], "..."
	}
	return badRow(row, c.at, fmt.Sprintf("%s: %s%s %v", d.columns[i].name, strconv.Quote(string(shown)), more, err))
}

func (d *rowDecoder) tooFew(row []byte, n int) *rowError {
	return badRow(row, len(row), fmt.Sprintf("%d fields, the header has %d", n, len(d.columns)))
}

func (d *rowDecoder) tooMany(row []byte, at int) *rowError {
	return badRow(row, at, fmt.Sprintf("more fields than the header, which has %d", len(d.columns)))
}

// badRow places an error at an offset of the row.
func badRow(row []byte, at int, what string) *rowError {
	before := row[:at]
	return &rowError{line: bytes.Count(before, newline), column: at - bytes.LastIndexByte(before, '\n'), what: what}
}
