package checkpoint

import (
	"fmt"
	"hash"
	"hash/crc32"

	"github.com/weirstream/weir/internal/job"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC32C of data, as handles and the metadata file carry it.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// NewChecksum computes a Checksum of data that comes in parts.
func NewChecksum() hash.Hash32 { return crc32.New(castagnoli) }

// InlineHandle is the handle of state that is small enough to travel in the ack. It keeps data.
func InlineHandle(data []byte) Handle {
	return Handle{Inline: data, Length: int64(len(data)), CRC32C: Checksum(data)}
}

// FileHandle is the handle of data that is stored at offset in the file path, which is relative to the directory of the checkpoint.
func FileHandle(path string, offset int64, data []byte) Handle {
	return Handle{Path: path, Offset: offset, Length: int64(len(data)), CRC32C: Checksum(data)}
}

// IsInline reports whether the state is in the handle itself; then there is no file.
func (h Handle) IsInline() bool { return h.Path == "" }

// Size is the number of bytes that the handle refers to.
func (h Handle) Size() int64 {
	if h.IsInline() {
		return int64(len(h.Inline))
	}
	return h.Length
}

// String names the bytes for error messages.
func (h Handle) String() string {
	if h.IsInline() {
		return fmt.Sprintf("%d inline bytes", len(h.Inline))
	}
	return fmt.Sprintf("%s bytes %d to %d", h.Path, h.Offset, h.Offset+h.Length)
}

// Verify checks that data are the bytes that were written for the handle. It must be called before any of them are used.
func (h Handle) Verify(data []byte) error {
	if int64(len(data)) != h.Size() {
		return fmt.Errorf("state in %s: %w: %d of %d bytes", h, ErrTruncated, len(data), h.Size())
	}
	if sum := Checksum(data); sum != h.CRC32C {
		return fmt.Errorf("state in %s: %w: it is %08x, recorded was %08x", h, ErrChecksum, sum, h.CRC32C)
	}
	return nil
}

// VerifyGroups checks that data are the bytes of those key groups, if they have checksums of their own; else only those of the whole handle can tell.
func (k *Keyed) VerifyGroups(data []byte, groups job.KeyGroupRange) error {
	if len(k.GroupCRC) == 0 {
		return nil
	}
	start := k.Offsets[groups.Start-k.Range.Start]
	for g := groups.Start; g < groups.End; g++ {
		i := g - k.Range.Start
		if sum := Checksum(data[k.Offsets[i]-start : k.Offsets[i+1]-start]); sum != k.GroupCRC[i] {
			return fmt.Errorf("key group %d of state in %s: %w: it is %08x, recorded was %08x", g, k.Handle, ErrChecksum, sum, k.GroupCRC[i])
		}
	}
	return nil
}

// Group returns the bytes of one key group of the range; data are all bytes of the handle.
func (k *Keyed) Group(data []byte, group int) []byte {
	i := group - k.Range.Start
	return data[k.Offsets[i]:k.Offsets[i+1]]
}

// Size is the number of bytes of state in the range.
func (k *Keyed) Size() int64 {
	if k.IsNative() {
		return k.fileBytes()
	}
	return span(k.Offsets)
}

// cut narrows k to the key groups in want, which lies within k's range.
func (k *Keyed) cut(want job.KeyGroupRange) Keyed {
	out := *k
	out.Range = want
	if k.IsNative() {
		out.Clipped = k.Clipped || want != k.Range
		return out
	}
	out.Offsets = k.Offsets[want.Start-k.Range.Start : want.End-k.Range.Start+1]
	if len(k.GroupCRC) > 0 {
		out.GroupCRC = k.GroupCRC[want.Start-k.Range.Start : want.End-k.Range.Start]
	}
	return out
}

// Len is the number of items.
func (it *Items) Len() int { return max(0, len(it.Offsets)-1) }

// Item returns the bytes of item i; data are all bytes of the handle.
func (it *Items) Item(data []byte, i int) []byte { return data[it.Offsets[i]:it.Offsets[i+1]] }

// cut selects the items from..to-1.
func (it *Items) cut(from, to int) Items {
	return Items{Handle: it.Handle, Offsets: it.Offsets[from : to+1]}
}

// StateBytes is the size of all state in the checkpoint.
func (m *Metadata) StateBytes() int64 {
	var n int64
	for _, s := range m.MasterStates {
		n += int64(len(s.State))
	}
	for _, v := range m.Vertices {
		for _, t := range v.Subtasks {
			n += t.stateBytes()
		}
	}
	return n
}

func (s *SubtaskState) stateBytes() (n int64) {
	for _, op := range s.Operators {
		for h := range op.Handles() {
			n += h.Size()
		}
		if op.Keyed != nil {
			n += op.Keyed.fileBytes()
		}
	}
	return n
}

func span(offsets []int64) int64 {
	if len(offsets) == 0 {
		return 0
	}
	return offsets[len(offsets)-1] - offsets[0]
}
