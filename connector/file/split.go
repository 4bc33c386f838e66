package file

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// splitVersion is the first byte of an encoded split. Another layout gets another number; every released one stays readable.
const splitVersion = 1

const flagGzip = 1

// maxPath is the longest path in an encoded split, in bytes.
const maxPath = 1 << 16

// split is a part of a file, with how far it has been read. It is what Splits returns and what readers leave in checkpoints.
//
// Offsets count bytes of the text; for gzip that is the decompressed text, whose end is not known before it is read. start, end and next
// are always the first byte of a line, or the end of the file.
type split struct {
	path  string
	id    identity
	gzip  bool
	start int64
	end   int64 // of gzip: unknownEnd
	next  int64 // what follows the last record that was emitted
	lines int64 // lines between start and next
}

// unknownEnd is the end of a gzip split.
const unknownEnd = math.MaxInt64

// identity recognises the contents of a file well enough to notice that it was replaced, cut or appended to.
type identity struct {
	size int64  // bytes on disk
	head uint32 // CRC-32C of the first headSize bytes on disk
}

// headSize is how many bytes of a file its identity covers.
const headSize = 4 << 10

// encode writes: version, flags, path (length, bytes), size, head (4 bytes little endian), start, length of the split (plain files), next - start,
// lines. Numbers are uvarints unless said otherwise.
func (s split) encode() []byte {
	b := []byte{splitVersion, 0}
	if s.gzip {
		b[1] = flagGzip
	}
	b = binary.AppendUvarint(b, uint64(len(s.path)))
	b = append(b, s.path...)
	b = binary.AppendUvarint(b, uint64(s.id.size))
	b = binary.LittleEndian.AppendUint32(b, s.id.head)
	b = binary.AppendUvarint(b, uint64(s.start))
	if !s.gzip {
		b = binary.AppendUvarint(b, uint64(s.end-s.start))
	}
	b = binary.AppendUvarint(b, uint64(s.next-s.start))
	return binary.AppendUvarint(b, uint64(s.lines))
}

// decodeSplit reads what encode wrote. It accepts nothing else: a split it returns encodes to the same bytes.
func decodeSplit(b []byte) (split, error) {
	if len(b) < 2 {
		return split{}, errors.New("file split: truncated")
	}
	if b[0] != splitVersion {
		return split{}, fmt.Errorf("file split: version %d is not known to this build, which reads version %d", b[0], splitVersion)
	}
	if b[1] > flagGzip {
		return split{}, fmt.Errorf("file split: unknown flags %#x", b[1])
	}
	d := decoder{rest: b[2:]}
	s := split{gzip: b[1] == flagGzip, end: unknownEnd}
	s.path = string(d.bytes(d.uvarint(maxPath)))
	s.id.size = d.uvarint(math.MaxInt64)
	if head := d.bytes(4); head != nil {
		s.id.head = binary.LittleEndian.Uint32(head)
	}
	s.start = d.uvarint(math.MaxInt64 - 1)
	if !s.gzip {
		s.end = s.start + d.uvarint(math.MaxInt64-1-s.start)
	}
	s.next = s.start + d.uvarint(s.end-s.start)
	s.lines = d.uvarint(s.next - s.start)
	switch {
	case d.bad || len(d.rest) > 0 || !bytes.Equal(s.encode(), b):
		return split{}, errors.New("file split: damaged")
	case s.path == "":
		return split{}, errors.New("file split: no path")
	case !s.gzip && s.end > s.id.size:
		return split{}, fmt.Errorf("file split: ends at byte %d of %s, which has %d", s.end, s.path, s.id.size)
	}
	return s, nil
}

// decoder takes values from the front of rest; bad stays true once something was missing or out of range.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) uvarint(limit int64) int64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > uint64(limit) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return int64(v)
}

func (d *decoder) bytes(n int64) []byte {
	if int64(len(d.rest)) < n {
		d.bad = true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}
