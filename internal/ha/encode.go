package ha

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// A file is: magic (4 bytes), version, kind (1 byte each), CRC32C of version, kind and body (4 bytes, big endian), body (JSON). Fields are only ever added; a
// field that is not known means that a newer build has written the file, and is refused.

const (
	magic   = "WRHA"
	version = 1
	// headerBytes is what is ahead of the body.
	headerBytes = len(magic) + 6
	// maxRecordBytes bounds a file: a graph holds the splits of its input.
	maxRecordBytes = 256 << 20
)

// kind tells what a file holds, so that one that was put in the place of another is noticed.
type kind byte

const (
	kindEpoch    kind = 'e'
	kindJob      kind = 'j'
	kindProgress kind = 'p'
	kindEnd      kind = 'x'
	kindPlan     kind = 'g'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(k kind, value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(body) > maxRecordBytes-headerBytes {
		return nil, fmt.Errorf("the record has %d bytes, at most %d are possible", len(body), maxRecordBytes-headerBytes)
	}
	b := append([]byte(magic), version, byte(k), 0, 0, 0, 0)
	binary.BigEndian.PutUint32(b[len(magic)+2:], sum(b, body))
	return append(b, body...), nil
}

func sum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[len(magic):len(magic)+2], castagnoli), castagnoli, body)
}

func decode(data []byte, k kind, value any) error {
	if len(data) < headerBytes || string(data[:len(magic)]) != magic {
		return errors.New("it is no record of a job master, or its beginning is damaged")
	}
	header, body := data[:headerBytes], data[headerBytes:]
	if v := header[len(magic)]; v != version {
		return fmt.Errorf("format version %d is not known to this build, which reads version %d", v, version)
	}
	if binary.BigEndian.Uint32(header[len(magic)+2:]) != sum(header, body) {
		return errors.New("it is damaged: the checksum does not match")
	}
	if got := kind(header[len(magic)+1]); got != k {
		return fmt.Errorf("it is a record of another kind: %q in the place of %q", got, k)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil {
		return fmt.Errorf("it was not written by this build, or a newer one: %w", err)
	}
	if rest := body[d.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return fmt.Errorf("%d bytes follow the record", len(rest))
	}
	return nil
}
