package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The file _metadata, all integers big-endian:
//
//	offset  length  content
//	     0       4  "WEIR"
//	     4       4  format version
//	     8       4  length of the body
//	    12       4  CRC32C of the body
//	    16          body: message weir.v1.CheckpointMetadata of proto/weir/v1/checkpoint.proto
//
// A new field of the message needs no new version: an old reader skips it. The version grows only when an old reader would go wrong.
const (
	metadataMagic = "WEIR"
	headerBytes   = 16

	// MetadataVersion is the highest format version that this build writes or reads. Version 2 says that there are named lists, compressed state,
	// or state in files of its backend, which a reader of version 1 would not see; what a reader of version 1 understands is written as version 1.
	MetadataVersion = 2
)

// What can be wrong with stored bytes.
var (
	ErrNotMetadata = errors.New("not a checkpoint metadata file")
	ErrVersion     = errors.New("unknown metadata version")
	ErrTruncated   = errors.New("truncated")
	ErrChecksum    = errors.New("checksum mismatch")
	ErrMalformed   = errors.New("malformed metadata")
)

// EncodeMetadata returns the content of a _metadata file. Equal metadata give equal bytes. It refuses what DecodeMetadata would refuse,
// so that no checkpoint can complete that cannot be read again.
func EncodeMetadata(md *Metadata) ([]byte, error) {
	if err := md.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	out := make([]byte, headerBytes, 4096)
	copy(out, metadataMagic)
	out = appendMetadata(out, md)
	if len(out) > MaxMetadataBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are possible; keep less state inline", ErrMalformed, len(out), MaxMetadataBytes)
	}
	body := out[headerBytes:]
	binary.BigEndian.PutUint32(out[4:], md.version())
	binary.BigEndian.PutUint32(out[8:], uint32(len(body)))
	binary.BigEndian.PutUint32(out[12:], Checksum(body))
	return out, nil
}

// version is the lowest format version whose readers understand md.
func (md *Metadata) version() uint32 {
	for i := range md.Vertices {
		for n := range md.Vertices[i].Subtasks {
			for k := range md.Vertices[i].Subtasks[n].Operators {
				if md.Vertices[i].Subtasks[n].Operators[k].isOfVersion2() {
					return 2
				}
			}
		}
	}
	return 1
}

func (s *OperatorState) isOfVersion2() bool {
	return len(s.Lists) > 0 ||
		s.Items != nil && s.Items.Handle.Compression != Uncompressed ||
		s.Keyed != nil && (s.Keyed.Handle.Compression != Uncompressed || s.Keyed.IsNative())
}

// DecodeMetadata reads the content of a _metadata file. It keeps no reference to data.
func DecodeMetadata(data []byte) (*Metadata, error) {
	body, err := metadataBody(data)
	if err != nil {
		return nil, err
	}
	md := &Metadata{}
	if err := decodeMetadata(body, md); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := md.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return md, nil
}

// metadataBody checks the header and returns the bytes behind it.
func metadataBody(data []byte) ([]byte, error) {
	n := min(len(data), len(metadataMagic))
	if string(data[:n]) != metadataMagic[:n] {
		return nil, fmt.Errorf("%w: it starts with %q", ErrNotMetadata, data[:n])
	}
	if len(data) < headerBytes {
		return nil, fmt.Errorf("metadata is %w: %d bytes, the header alone has %d", ErrTruncated, len(data), headerBytes)
	}
	if v := binary.BigEndian.Uint32(data[4:]); v < 1 || v > MetadataVersion {
		return nil, fmt.Errorf("%w %d: this build reads versions up to %d; read it with the build that wrote it or a later one",
			ErrVersion, v, MetadataVersion)
	}
	if len(data) > MaxMetadataBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are possible", ErrMalformed, len(data), MaxMetadataBytes)
	}
	body, want := data[headerBytes:], uint64(binary.BigEndian.Uint32(data[8:]))
	switch got := uint64(len(body)); {
	case got < want:
		return nil, fmt.Errorf("metadata is %w: %d of %d bytes", ErrTruncated, len(data), want+headerBytes)
	case got > want:
		return nil, fmt.Errorf("%w: %d bytes follow its end", ErrMalformed, got-want)
	}
	if sum, recorded := Checksum(body), binary.BigEndian.Uint32(data[12:]); sum != recorded {
		return nil, fmt.Errorf("metadata %w: it is %08x, recorded was %08x; the file is damaged", ErrChecksum, sum, recorded)
	}
	return body, nil
}
