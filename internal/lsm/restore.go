package lsm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weirstream/weir/internal/cached"
)

// Restore makes a store of parts of others, whose key groups do not overlap. One part keeps its files, without a look into them; the others are
// written anew.
func Restore(ctx context.Context, cfg Config, parts []cached.Part) (*Store, error) {
	if len(parts) == 0 {
		return Open(cfg)
	}
	s, err := prepare(cfg)
	if err != nil {
		return nil, err
	}
	rest := slices.Clone(parts)
	slices.SortStableFunc(rest, func(a, b cached.Part) int { return cmp.Compare(size(b), size(a)) })
	if err := s.adopt(ctx, rest[0], len(parts) == 1); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for i, p := range rest[1:] {
		if err := s.merge(ctx, cfg, p, i); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// size is an estimate of how much of the part is wanted.
func size(p cached.Part) (bytes int64) {
	for _, f := range p.Files {
		bytes += f.Size
	}
	return bytes
}

// adopt makes the files of p those of the store.
func (s *Store) adopt(ctx context.Context, p cached.Part, names bool) error {
	if err := s.place(p.Files, names); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	if p.Whole {
		return nil
	}
	return s.clip(ctx, p.First, p.End)
}

// place puts files into the directory, and remembers their names if they may be called so again.
func (s *Store) place(files []cached.File, names bool) error {
	s.given = map[string]string{}
	found := false
	for _, f := range files {
		if strings.HasSuffix(f.Name, bundleSuffix) {
			data, err := readFile(s.fs, f.Path)
			if err == nil {
				err = unbundle(data, func(name string, content []byte) error {
					return writeFile(s.fs, s.fs.PathJoin(s.dir, name), content)
				})
			}
			if err != nil {
				return fmt.Errorf("file %s: %w", f.Name, s.fault(err))
			}
			found = true
			continue
		}
		table, ok := tableOf(f.Name)
		if !ok {
			return s.fault(fmt.Errorf("a snapshot has a file %q, which is none of a store's", f.Name))
		}
		if err := vfs.LinkOrCopy(s.fs, f.Path, s.fs.PathJoin(s.dir, table)); err != nil {
			return fmt.Errorf("file %s: %w", f.Name, s.fault(err))
		}
		if names {
			s.given[table] = f.Name
		}
	}
	if !found {
		return s.fault(errors.New("a snapshot has no file with the name of its bundle"))
	}
	return nil
}

// clip takes all key groups away but those from first up to but without end. The files stay as they are: what is not wanted of them is no longer seen.
func (s *Store) clip(ctx context.Context, first, end int) (err error) {
	defer s.recover(&err)
	for _, span := range [][2]int{{0, first}, {end, 0x10000}} {
		if span[0] >= span[1] {
			continue
		}
		if err := s.fault(s.db.Excise(ctx, pebble.KeyRange{Start: groupStart(span[0]), End: groupStart(span[1])})); err != nil {
			return err
		}
	}
	return nil
}

// merge writes what is wanted of p.
func (s *Store) merge(ctx context.Context, cfg Config, p cached.Part, number int) (err error) {
	cfg.Dir = s.fs.PathJoin(s.dir, fmt.Sprintf("part-%d", number))
	other, err := prepare(cfg)
	if err != nil {
		return err
	}
	p.Whole = true // it is only read where it is wanted
	if err := other.adopt(ctx, p, false); err != nil {
		return err
	}
	view := other.View()
	_, err = s.Write(ctx, func(w cached.Writer) error {
		return view.Range(groupStart(p.First), groupStart(p.End), func(key, value []byte) error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return w.Set(key, value)
		})
	})
	return errors.Join(err, view.Close(), other.Close(), s.fault(s.fs.RemoveAll(cfg.Dir)))
}

// groupStart is the least key of a key group.
func groupStart(group int) []byte {
	if group > 0xffff {
		return []byte{0xff, 0xff, 0xff}
	}
	return binary.BigEndian.AppendUint16(nil, uint16(group))
}
