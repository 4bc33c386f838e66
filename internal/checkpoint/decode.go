package checkpoint

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirstream/weir/internal/job"
)

func decodeMetadata(b []byte, md *Metadata) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text((*string)(&md.Job))
		case 2:
			return f.text(&md.JobName)
		case 3:
			return f.int64((*int64)(&md.ID))
		case 4:
			return f.int32((*int)(&md.Kind))
		case 5:
			var ms int64
			err := f.int64(&ms)
			md.Timestamp = fromMillis(ms)
			return err
		case 6:
			return f.text(&md.Fingerprint)
		case 7:
			return appendDecoded(f, "vertex", MaxVertices, &md.Vertices, decodeVertex)
		case 8:
			return f.varint((*uint64)(&md.Epoch))
		case 9:
			return decodeParam(f, md)
		case 10:
			return appendDecoded(f, "master state", MaxMasterStates, &md.MasterStates, decodeMasterState)
		}
		return nil
	})
}

func decodeParam(f field, md *Metadata) error {
	var key, value string
	entry, err := f.bytes()
	if err != nil {
		return err
	}
	err = eachField(entry, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&key)
		case 2:
			return f.text(&value)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("parameter %d: %w", len(md.Params)+1, err)
	}
	if len(md.Params) == MaxParams {
		return fmt.Errorf("more than %d parameters", MaxParams)
	}
	if md.Params == nil {
		md.Params = map[string]string{}
	}
	md.Params[key] = value
	return nil
}

func decodeMasterState(b []byte, s *MasterState) error {
	s.State = []byte{} // there is one, although an empty one is not written
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&s.Hook)
		case 2:
			state, err := f.bytes()
			s.State = append([]byte{}, state...)
			return err
		}
		return nil
	})
}

func decodeVertex(b []byte, v *VertexState) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text((*string)(&v.Vertex))
		case 2:
			return f.int32(&v.Parallelism)
		case 3:
			return f.int32(&v.MaxParallelism)
		case 4:
			return appendDecoded(f, "operator", MaxOperators, &v.Operators, decodeOperator)
		case 5:
			return appendDecoded(f, "subtask", MaxSubtasksPerVertex, &v.Subtasks, decodeSubtask)
		}
		return nil
	})
}

func decodeOperator(b []byte, op *job.Operator) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&op.ID)
		case 2:
			return f.text(&op.Kind)
		case 3:
			return f.text(&op.Signature)
		case 4:
			return appendDecoded(f, "state", MaxStates, &op.States, func(b []byte, s *string) error {
				*s = string(b)
				return nil
			})
		case 5:
			return f.bool(&op.Stateful)
		}
		return nil
	})
}

func decodeSubtask(b []byte, s *SubtaskState) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.int32(&s.Subtask)
		case 2:
			return appendDecoded(f, "operator", MaxOperators, &s.Operators, decodeOperatorState)
		case 3:
			return f.bool(&s.Ended)
		}
		return nil
	})
}

func decodeOperatorState(b []byte, s *OperatorState) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&s.Operator)
		case 2:
			s.Items = &Items{}
			return f.message("items", func(b []byte) error { return decodeItems(b, s.Items) })
		case 3:
			s.Keyed = &Keyed{}
			return f.message("keyed state", func(b []byte) error { return decodeKeyed(b, s.Keyed) })
		case 4:
			return appendDecoded(f, "list state", MaxStates, &s.Lists, decodeList)
		}
		return nil
	})
}

func decodeList(b []byte, l *List) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message("schema", func(b []byte) error { return decodeSchema(b, &l.Schema) })
		case 2:
			var mode int
			err := f.int32(&mode)
			l.Mode = job.ListMode(mode)
			return err
		case 3:
			return f.message("items", func(b []byte) error { return decodeItems(b, &l.Items) })
		}
		return nil
	})
}

func decodeItems(b []byte, it *Items) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message("handle", func(b []byte) error { return decodeHandle(b, &it.Handle) })
		case 2:
			return f.offsets(&it.Offsets, MaxItemsPerHandle+1)
		}
		return nil
	})
}

func decodeKeyed(b []byte, k *Keyed) error {
	groups := 0
	err := eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.message("handle", func(b []byte) error { return decodeHandle(b, &k.Handle) })
		case 2:
			return f.int32(&k.Range.Start)
		case 3:
			return f.offsets(&k.Offsets, job.MaxMaxParallelism+1)
		case 4:
			return appendDecoded(f, "state", MaxStates, &k.States, decodeSchema)
		case 5:
			return f.text(&k.Backend)
		case 6:
			return appendDecoded(f, "shared file", MaxSharedFiles, &k.Files, decodeSharedFile)
		case 9:
			return f.int32(&groups)
		case 10:
			return f.bool(&k.Clipped)
		case 8:
			return f.checksums(&k.GroupCRC, job.MaxMaxParallelism)
		}
		return nil
	})
	k.Range.End = k.Range.Start + max(0, len(k.Offsets)-1)
	if k.IsNative() {
		k.Range.End = k.Range.Start + groups
	}
	return err
}

func decodeSharedFile(b []byte, s *SharedFile) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&s.Name)
		case 2:
			return f.text(&s.Path)
		case 3:
			return f.int64(&s.Size)
		case 4:
			var v uint64
			err := f.varint(&v)
			s.CRC32C = uint32(v)
			return err
		}
		return nil
	})
}

func decodeSchema(b []byte, s *StateSchema) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&s.Name)
		case 2:
			return f.text(&s.Kind)
		case 3:
			return f.text(&s.KeyType)
		case 4:
			return f.text(&s.ValueType)
		case 5:
			return f.text(&s.NamespaceType)
		case 6:
			return f.text(&s.MapKeyType)
		case 7:
			return f.int64(&s.TTL)
		}
		return nil
	})
}

func decodeHandle(b []byte, h *Handle) error {
	return eachField(b, func(f field) error {
		switch f.num {
		case 1:
			inline, err := f.bytes()
			h.Inline = bytes.Clone(inline)
			return err
		case 2:
			return f.text(&h.Path)
		case 3:
			return f.int64(&h.Offset)
		case 4:
			return f.int64(&h.Length)
		case 5:
			var v uint64
			err := f.varint(&v)
			h.CRC32C = uint32(v)
			return err
		case 6:
			return f.int32((*int)(&h.Compression))
		case 7:
			return f.int64(&h.RawLength)
		}
		return nil
	})
}

// field is one field of a message; the value of a field that a decoder does not know is not looked at.
type field struct {
	num    protowire.Number
	typ    protowire.Type
	number uint64 // of a varint or a fixed32
	data   []byte // of a length-delimited field
}

// eachField visits the fields of a message in the order in which they are stored.
func eachField(b []byte, visit func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := field{num: num, typ: typ}
		switch typ {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.number = uint64(v)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", num, protowire.ParseError(n))
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

func (f field) want(typ protowire.Type) error {
	if f.typ != typ {
		return fmt.Errorf("field %d has wire type %d instead of %d", f.num, f.typ, typ)
	}
	return nil
}

func (f field) bytes() ([]byte, error) { return f.data, f.want(protowire.BytesType) }

func (f field) varint(dst *uint64) error {
	*dst = f.number
	return f.want(protowire.VarintType)
}

func (f field) int64(dst *int64) error {
	*dst = int64(f.number)
	return f.want(protowire.VarintType)
}

func (f field) int32(dst *int) error {
	v := int64(f.number)
	if v < math.MinInt32 || v > math.MaxInt32 {
		return fmt.Errorf("field %d is %d, which needs more than 32 bits", f.num, v)
	}
	*dst = int(v)
	return f.want(protowire.VarintType)
}

func (f field) bool(dst *bool) error {
	*dst = f.number != 0
	return f.want(protowire.VarintType)
}

func (f field) text(dst *string) error {
	if len(f.data) > MaxStringBytes {
		return fmt.Errorf("field %d has %d bytes, at most %d are possible", f.num, len(f.data), MaxStringBytes)
	}
	*dst = string(f.data)
	return f.want(protowire.BytesType)
}

func (f field) message(what string, decode func([]byte) error) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	if err := decode(b); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// offsets reads a repeated integer in either of its two encodings.
func (f field) offsets(dst *[]int64, limit int) error {
	if f.typ == protowire.VarintType {
		*dst = append(*dst, int64(f.number))
		return nil
	}
	b, err := f.bytes()
	if err != nil {
		return err
	}
	for len(b) > 0 {
		if len(*dst) == limit {
			return fmt.Errorf("field %d has more than %d values", f.num, limit)
		}
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return fmt.Errorf("field %d: %w", f.num, protowire.ParseError(n))
		}
		*dst = append(*dst, int64(v))
		b = b[n:]
	}
	return nil
}

// checksums reads a repeated fixed32 in either of its two encodings.
func (f field) checksums(dst *[]uint32, limit int) error {
	b := f.data
	if f.typ == protowire.Fixed32Type {
		b = protowire.AppendFixed32(nil, uint32(f.number))
	} else if _, err := f.bytes(); err != nil {
		return err
	}
	for len(b) > 0 {
		if len(*dst) == limit {
			return fmt.Errorf("field %d has more than %d values", f.num, limit)
		}
		v, n := protowire.ConsumeFixed32(b)
		if n < 0 {
			return fmt.Errorf("field %d: %w", f.num, protowire.ParseError(n))
		}
		*dst = append(*dst, v)
		b = b[n:]
	}
	return nil
}

// appendDecoded reads one element of a repeated field.
func appendDecoded[T any](f field, what string, limit int, dst *[]T, decode func([]byte, *T) error) error {
	b, err := f.bytes()
	if err != nil {
		return err
	}
	if len(*dst) == limit {
		return fmt.Errorf("more than %d elements of kind %s", limit, what)
	}
	var v T
	if err := decode(b, &v); err != nil {
		return fmt.Errorf("%s %d: %w", what, len(*dst)+1, err)
	}
	*dst = append(*dst, v)
	return nil
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
