package rpc

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

func encodeHandle(h checkpoint.Handle) *pb.Handle {
	return &pb.Handle{
		Inline: h.Inline, Path: h.Path, Offset: h.Offset, Length: h.Length, Crc32C: h.CRC32C,
		Compression: pb.Compression(h.Compression), RawLength: h.RawLength,
	}
}

// decodeHandle leaves the validation to that of the state that the handle is in.
func decodeHandle(p *pb.Handle) checkpoint.Handle {
	return checkpoint.Handle{
		Inline: p.GetInline(), Path: p.GetPath(), Offset: p.GetOffset(), Length: p.GetLength(), CRC32C: p.GetCrc32C(),
		Compression: checkpoint.Compression(p.GetCompression()), RawLength: p.GetRawLength(),
	}
}

func encodeItems(it checkpoint.Items) *pb.ItemsHandle {
	return &pb.ItemsHandle{Handle: encodeHandle(it.Handle), Offsets: it.Offsets}
}

func decodeItems(p *pb.ItemsHandle) (checkpoint.Items, error) {
	it := checkpoint.Items{Handle: decodeHandle(p.GetHandle()), Offsets: p.GetOffsets()}
	return it, it.Validate()
}

func encodeList(l checkpoint.List) *pb.ListHandle {
	return &pb.ListHandle{Schema: encodeSchema(l.Schema), Mode: encodeEnum[pb.ListMode](l.Mode), Items: encodeItems(l.Items)}
}

func decodeList(p *pb.ListHandle) (checkpoint.List, error) {
	mode, err := decodeEnum[job.ListMode]("list mode", p.GetMode(), pb.ListMode_name)
	if err != nil {
		return checkpoint.List{}, err
	}
	items, err := decodeItems(p.GetItems())
	if err != nil {
		return checkpoint.List{}, err
	}
	l := checkpoint.List{Schema: decodeSchema(p.GetSchema()), Mode: mode, Items: items}
	return l, l.Validate()
}

func encodeKeyed(k checkpoint.Keyed) *pb.KeyedHandle {
	p := &pb.KeyedHandle{
		Handle: encodeHandle(k.Handle), FirstKeyGroup: encodeInt(k.Range.Start), Offsets: k.Offsets,
		States: each(k.States, encodeSchema), Backend: k.Backend, Files: each(k.Files, encodeSharedFile), Clipped: k.Clipped,
		GroupCrc32C: k.GroupCRC,
	}
	if k.IsNative() {
		p.KeyGroups = encodeInt(k.Range.Len())
	}
	return p
}

func encodeSharedFile(f checkpoint.SharedFile) *pb.SharedFile {
	return &pb.SharedFile{Name: f.Name, Path: f.Path, Size: f.Size, Crc32C: f.CRC32C}
}

func decodeSharedFile(p *pb.SharedFile) checkpoint.SharedFile {
	return checkpoint.SharedFile{Name: p.GetName(), Path: p.GetPath(), Size: p.GetSize(), CRC32C: p.GetCrc32C()}
}

func decodeKeyed(p *pb.KeyedHandle) (checkpoint.Keyed, error) {
	first := int(p.GetFirstKeyGroup())
	k := checkpoint.Keyed{
		Handle: decodeHandle(p.GetHandle()), Offsets: p.GetOffsets(), States: each(p.GetStates(), decodeSchema),
		Range:   job.KeyGroupRange{Start: first, End: first + max(0, len(p.GetOffsets())-1)},
		Backend: p.GetBackend(), Files: each(p.GetFiles(), decodeSharedFile), Clipped: p.GetClipped(), GroupCRC: p.GetGroupCrc32C(),
	}
	if k.IsNative() {
		k.Range.End = first + int(p.GetKeyGroups())
	}
	return k, k.Validate(job.MaxMaxParallelism)
}

func encodeSchema(s checkpoint.StateSchema) *pb.StateSchema {
	return &pb.StateSchema{
		Name: s.Name, Kind: s.Kind, KeyType: s.KeyType, ValueType: s.ValueType,
		NamespaceType: s.NamespaceType, MapKeyType: s.MapKeyType, TtlMs: s.TTL,
	}
}

func decodeSchema(p *pb.StateSchema) checkpoint.StateSchema {
	return checkpoint.StateSchema{
		Name: p.GetName(), Kind: p.GetKind(), KeyType: p.GetKeyType(), ValueType: p.GetValueType(),
		NamespaceType: p.GetNamespaceType(), MapKeyType: p.GetMapKeyType(), TTL: p.GetTtlMs(),
	}
}

func encodeSubtaskState(s checkpoint.SubtaskState) *pb.SubtaskState {
	return &pb.SubtaskState{Subtask: encodeInt(s.Subtask), Operators: each(s.Operators, encodeOperatorState), Ended: s.Ended}
}

func decodeSubtaskState(p *pb.SubtaskState) (checkpoint.SubtaskState, error) {
	s := checkpoint.SubtaskState{Subtask: int(p.GetSubtask()), Ended: p.GetEnded()}
	if s.Subtask < 0 {
		return s, fmt.Errorf("state of subtask %d, the first is 0", s.Subtask)
	}
	var err error
	if s.Operators, err = tryEach("state", p.GetOperators(), decodeOperatorState); err != nil {
		return s, err
	}
	return s, distinct(s.Operators, func(o checkpoint.OperatorState) string { return o.Operator })
}

// distinct checks that no operator gets or gives state twice.
func distinct[T any](states []T, operator func(T) string) error {
	seen := map[string]bool{}
	for _, s := range states {
		if seen[operator(s)] {
			return fmt.Errorf("state of operator %s occurs twice", operator(s))
		}
		seen[operator(s)] = true
	}
	return nil
}

func encodeOperatorState(s checkpoint.OperatorState) *pb.OperatorSubtaskState {
	p := &pb.OperatorSubtaskState{OperatorId: s.Operator}
	if s.Items != nil {
		p.Items = encodeItems(*s.Items)
	}
	if s.Keyed != nil {
		p.Keyed = encodeKeyed(*s.Keyed)
	}
	p.Lists = each(s.Lists, encodeList)
	return p
}

func decodeOperatorState(p *pb.OperatorSubtaskState) (checkpoint.OperatorState, error) {
	s := checkpoint.OperatorState{Operator: p.GetOperatorId()}
	if s.Operator == "" {
		return s, errors.New("no operator id")
	}
	if p.Items != nil {
		items, err := decodeItems(p.Items)
		if err != nil {
			return s, fmt.Errorf("items of operator %s: %w", s.Operator, err)
		}
		s.Items = &items
	}
	if p.Keyed != nil {
		keyed, err := decodeKeyed(p.Keyed)
		if err != nil {
			return s, fmt.Errorf("keyed state of operator %s: %w", s.Operator, err)
		}
		s.Keyed = &keyed
	}
	var err error
	if s.Lists, err = tryEach("list state", p.Lists, decodeList); err != nil {
		return s, fmt.Errorf("operator %s: %w", s.Operator, err)
	}
	return s, nil
}

func encodeOperatorRestore(r checkpoint.OperatorRestore) *pb.OperatorRestore {
	return &pb.OperatorRestore{OperatorId: r.Operator, Items: each(r.Items, encodeItems), Keyed: each(r.Keyed, encodeKeyed), Lists: each(r.Lists, encodeList)}
}

func decodeOperatorRestore(p *pb.OperatorRestore) (checkpoint.OperatorRestore, error) {
	r := checkpoint.OperatorRestore{Operator: p.GetOperatorId()}
	if r.Operator == "" {
		return r, errors.New("no operator id")
	}
	var err error
	if r.Items, err = tryEach("items", p.GetItems(), decodeItems); err != nil {
		return r, fmt.Errorf("operator %s: %w", r.Operator, err)
	}
	if r.Keyed, err = tryEach("keyed state", p.GetKeyed(), decodeKeyed); err != nil {
		return r, fmt.Errorf("operator %s: %w", r.Operator, err)
	}
	if r.Lists, err = tryEach("list state", p.GetLists(), decodeList); err != nil {
		return r, fmt.Errorf("operator %s: %w", r.Operator, err)
	}
	return r, nil
}

func encodeMetrics(m checkpoint.Metrics) *pb.CheckpointMetrics {
	return &pb.CheckpointMetrics{
		StartDelayUs: encodeDuration(m.StartDelay, time.Microsecond), AlignmentUs: encodeDuration(m.Alignment, time.Microsecond),
		SyncUs: encodeDuration(m.Sync, time.Microsecond), AsyncUs: encodeDuration(m.Async, time.Microsecond), StateBytes: m.StateBytes,
	}
}

func decodeMetrics(p *pb.CheckpointMetrics) checkpoint.Metrics {
	return checkpoint.Metrics{
		StartDelay: decodeDuration(p.GetStartDelayUs(), time.Microsecond), Alignment: decodeDuration(p.GetAlignmentUs(), time.Microsecond),
		Sync: decodeDuration(p.GetSyncUs(), time.Microsecond), Async: decodeDuration(p.GetAsyncUs(), time.Microsecond), StateBytes: p.GetStateBytes(),
	}
}
