package checkpoint

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirstream/weir/internal/job"
)

// The body is written by hand and not by generated code, so that this package stays below the wire. Every function writes one message,
// fields in ascending order and zero values left out: byte for byte what a deterministic protobuf encoder writes.

func appendMetadata(b []byte, md *Metadata) []byte {
	b = appendString(b, 1, string(md.Job))
	b = appendString(b, 2, md.JobName)
	b = appendInt(b, 3, int64(md.ID))
	b = appendInt(b, 4, int64(md.Kind))
	b = appendInt(b, 5, toMillis(md.Timestamp))
	b = appendString(b, 6, md.Fingerprint)
	for i := range md.Vertices {
		b = appendMessage(b, 7, appendVertex(nil, &md.Vertices[i]))
	}
	b = appendInt(b, 8, int64(md.Epoch))
	for _, k := range slices.Sorted(maps.Keys(md.Params)) {
		// Both fields of a map entry are always written.
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), k)
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), md.Params[k])
		b = appendMessage(b, 9, entry)
	}
	for _, s := range md.MasterStates {
		b = appendMessage(b, 10, appendString(appendString(nil, 1, s.Hook), 2, string(s.State)))
	}
	return b
}

func appendVertex(b []byte, v *VertexState) []byte {
	b = appendString(b, 1, string(v.Vertex))
	b = appendInt(b, 2, int64(v.Parallelism))
	b = appendInt(b, 3, int64(v.MaxParallelism))
	for _, op := range v.Operators {
		b = appendMessage(b, 4, appendOperator(nil, op))
	}
	for i := range v.Subtasks {
		b = appendMessage(b, 5, appendSubtask(nil, &v.Subtasks[i]))
	}
	return b
}

func appendOperator(b []byte, op job.Operator) []byte {
	b = appendString(b, 1, op.ID)
	b = appendString(b, 2, op.Kind)
	b = appendString(b, 3, op.Signature)
	for _, s := range op.States {
		b = appendMessage(b, 4, []byte(s))
	}
	return appendBool(b, 5, op.Stateful)
}

func appendSubtask(b []byte, s *SubtaskState) []byte {
	b = appendInt(b, 1, int64(s.Subtask))
	for i := range s.Operators {
		b = appendMessage(b, 2, appendOperatorState(nil, &s.Operators[i]))
	}
	return appendBool(b, 3, s.Ended)
}

func appendOperatorState(b []byte, s *OperatorState) []byte {
	b = appendString(b, 1, s.Operator)
	if s.Items != nil {
		b = appendMessage(b, 2, appendItems(nil, s.Items))
	}
	if s.Keyed != nil {
		b = appendMessage(b, 3, appendKeyed(nil, s.Keyed))
	}
	for i := range s.Lists {
		b = appendMessage(b, 4, appendList(nil, &s.Lists[i]))
	}
	return b
}

func appendList(b []byte, l *List) []byte {
	b = appendMessage(b, 1, appendSchema(nil, l.Schema))
	b = appendInt(b, 2, int64(l.Mode))
	return appendMessage(b, 3, appendItems(nil, &l.Items))
}

func appendItems(b []byte, it *Items) []byte {
	b = appendMessage(b, 1, appendHandle(nil, it.Handle))
	return appendOffsets(b, 2, it.Offsets)
}

func appendKeyed(b []byte, k *Keyed) []byte {
	b = appendMessage(b, 1, appendHandle(nil, k.Handle))
	b = appendInt(b, 2, int64(k.Range.Start))
	b = appendOffsets(b, 3, k.Offsets)
	for _, s := range k.States {
		b = appendMessage(b, 4, appendSchema(nil, s))
	}
	b = appendString(b, 5, k.Backend)
	for _, f := range k.Files {
		b = appendMessage(b, 6, appendSharedFile(nil, f))
	}
	b = appendChecksums(b, 8, k.GroupCRC)
	if k.IsNative() {
		b = appendInt(b, 9, int64(k.Range.Len()))
	}
	return appendBool(b, 10, k.Clipped)
}

func appendSharedFile(b []byte, f SharedFile) []byte {
	b = appendString(b, 1, f.Name)
	b = appendString(b, 2, f.Path)
	b = appendInt(b, 3, f.Size)
	return appendInt(b, 4, int64(f.CRC32C))
}

func appendSchema(b []byte, s StateSchema) []byte {
	b = appendString(b, 1, s.Name)
	b = appendString(b, 2, s.Kind)
	b = appendString(b, 3, s.KeyType)
	b = appendString(b, 4, s.ValueType)
	b = appendString(b, 5, s.NamespaceType)
	b = appendString(b, 6, s.MapKeyType)
	return appendInt(b, 7, s.TTL)
}

func appendHandle(b []byte, h Handle) []byte {
	b = appendString(b, 1, string(h.Inline))
	b = appendString(b, 2, h.Path)
	b = appendInt(b, 3, h.Offset)
	b = appendInt(b, 4, h.Length)
	b = appendInt(b, 5, int64(h.CRC32C))
	b = appendInt(b, 6, int64(h.Compression))
	return appendInt(b, 7, h.RawLength)
}

// appendMessage writes an embedded message, or an element of a repeated string, which looks the same: it is written although empty.
func appendMessage(b []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), content)
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendInt(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

func appendBool(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendInt(b, num, 1)
}

func appendOffsets(b []byte, num protowire.Number, offsets []int64) []byte {
	if len(offsets) == 0 {
		return b
	}
	var packed []byte
	for _, o := range offsets {
		packed = protowire.AppendVarint(packed, uint64(o))
	}
	return appendMessage(b, num, packed)
}

func appendChecksums(b []byte, num protowire.Number, sums []uint32) []byte {
	if len(sums) == 0 {
		return b
	}
	var packed []byte
	for _, s := range sums {
		packed = protowire.AppendFixed32(packed, s)
	}
	return appendMessage(b, num, packed)
}

// toMillis maps the zero time to 0, which the wire leaves out.
func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
