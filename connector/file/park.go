package file

import (
	"fmt"
	"os"
	"path/filepath"
)

// parking appends malformed rows to a file that other subtasks may append to as well: each row is one write, which the system does not
// interleave with others. A nil parking has no rows.
type parking struct {
	path  string
	file  *os.File
	dirty bool // rows were written since the last sync
	buf   []byte
}

func (p *parking) add(place, what string, row []byte) error {
	if p.file == nil {
		f, err := os.OpenFile(p.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
		if err != nil {
			return fmt.Errorf("park malformed row: %w", err)
		}
		p.file = f
		if err := syncDir(filepath.Dir(p.path)); err != nil {
			return fmt.Errorf("park malformed row: %w", err)
		}
	}
	p.buf = append(p.buf[:0], place...)
	p.buf = append(p.buf, '\t')
	p.buf = append(p.buf, what...)
	p.buf = append(p.buf, '\t')
	p.buf = append(p.buf, row...)
	p.buf = append(p.buf, '\n')
	if _, err := p.file.Write(p.buf); err != nil {
		return fmt.Errorf("park malformed row: %w", err)
	}
	p.dirty = true
	return nil
}

func (p *parking) sync() error {
	if p == nil || !p.dirty {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("parked rows: %w", err)
	}
	p.dirty = false
	return nil
}

func (p *parking) close() error {
	if p == nil || p.file == nil {
		return nil
	}
	f := p.file
	p.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("parked rows: %w", err)
	}
	return nil
}
