package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// list is a list state of an operator: one with a name, or the items of a source or a sink.
type list struct {
	schema checkpoint.StateSchema
	mode   job.ListMode // 0: the items of a source or a sink
}

// lists are the list states of an operator, those with names in order of declaration.
func (o *operator) lists() []list {
	var out []list
	for _, p := range o.parts {
		for _, l := range p.state.Lists {
			if !slices.ContainsFunc(out, func(other list) bool { return other.schema.Name == l.Schema.Name }) {
				out = append(out, list{l.Schema, l.Mode})
			}
		}
	}
	if slices.ContainsFunc(o.parts, func(p part) bool { return p.state.Items != nil }) {
		out = append(out, list{schema: checkpoint.StateSchema{Kind: OperatorList}})
	}
	return out
}

// list finds a list state with a name; nil: the operator has none.
func (o *operator) list(name string) *list {
	for _, l := range o.lists() {
		if l.mode != 0 && l.schema.Name == name {
			return &l
		}
	}
	return nil
}

// in is what a subtask has of the list state; nil: nothing.
func (l *list) in(s *checkpoint.OperatorState) *checkpoint.Items {
	if l.mode == 0 {
		return s.Items
	}
	for i := range s.Lists {
		if s.Lists[i].Schema.Name == l.schema.Name {
			return &s.Lists[i].Items
		}
	}
	return nil
}

// parts are the subtasks whose items are looked at. The copies of a broadcast state are equal: one stands for all.
func (l *list) parts(o *operator) (out []part) {
	for _, p := range o.parts {
		if l.in(p.state) != nil {
			out = append(out, p)
		}
	}
	if l.mode == job.BroadcastState && len(out) > 1 {
		out = out[:1]
	}
	return out
}

// what names the list state in errors.
func (l *list) what() string {
	if l.mode == 0 {
		return "list state"
	}
	return "list state " + l.schema.Name
}

func (s *Stored) listReport(ctx context.Context, o *operator, l *list) (StateReport, error) {
	out := StateReport{
		Operator: o.id, Name: l.schema.Name, Kind: l.schema.Kind, Mode: l.mode, KeyType: l.schema.KeyType, ValueType: l.schema.ValueType,
	}
	err := s.items(ctx, o, l, func(_ int, item []byte) error {
		out.Entries++
		out.Bytes += int64(len(item))
		return nil
	})
	return out, err
}

// getListed finds what a list state has: of a broadcast state the value of a key, of the others the elements of the subtask whose number key is.
func (s *Stored) getListed(ctx context.Context, o *operator, l *list, key string) (Entry, error) {
	out := Entry{Operator: o.id, State: l.schema, Mode: l.mode}
	values, err := codec.NewDynamic(l.schema.ValueType)
	if err != nil {
		return out, fmt.Errorf("operator %s: state %s: value: %w", o.id, l.schema.Name, err)
	}
	if l.mode == job.BroadcastState {
		return s.getBroadcast(ctx, o, l, values, out, key)
	}
	subtask, err := strconv.Atoi(key)
	if err != nil || subtask < 0 || subtask >= o.vertex.Parallelism {
		return out, fmt.Errorf("%w %s of operator %s: the key of a list state is the number of a subtask, 0 to %d", ErrBadKey, l.schema.Name, o.id, o.vertex.Parallelism-1)
	}
	elements := []json.RawMessage{}
	size := 0
	err = s.items(ctx, o, l, func(of int, item []byte) error {
		if of != subtask {
			return nil
		}
		text, _, err := values.JSON(item)
		if size += len(text); err == nil && size > codec.MaxJSONBytes {
			err = fmt.Errorf("the list is longer than %d bytes as JSON", codec.MaxJSONBytes)
		}
		elements = append(elements, text)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Subtask, out.Key = subtask, json.RawMessage(strconv.Itoa(subtask))
	out.Value, err = json.Marshal(elements)
	return out, err
}

func (s *Stored) getBroadcast(ctx context.Context, o *operator, l *list, values *codec.Dynamic, out Entry, key string) (Entry, error) {
	keys, err := codec.NewDynamic(l.schema.KeyType)
	if err != nil {
		return out, fmt.Errorf("operator %s: state %s: key: %w", o.id, l.schema.Name, err)
	}
	wanted, err := keys.AppendKey(nil, key)
	if err != nil {
		return out, fmt.Errorf("%w %s of operator %s: %w", ErrBadKey, l.schema.Name, o.id, err)
	}
	err = s.items(ctx, o, l, func(of int, item []byte) error {
		value, err := keys.Skip(item)
		if err != nil || !bytes.Equal(item[:len(item)-len(value)], wanted) {
			return err
		}
		out.Subtask = of
		out.Value, _, err = values.JSON(value)
		return err
	})
	if err == nil && out.Value == nil {
		err = fmt.Errorf("key %s in state %s of operator %s: %w", key, l.schema.Name, o.id, ErrNoKey)
	}
	if err != nil {
		return out, err
	}
	out.Key, _, err = keys.JSON(wanted)
	return out, err
}

// diffLists compares the list states of an operator.
func diffLists(ctx context.Context, a, b *Stored, oa, ob *operator) ([]StateDiff, error) {
	var out []StateDiff
	second := ob.lists()
	match := func(all []list, l list) int {
		return slices.IndexFunc(all, func(o list) bool { return o.schema.Name == l.schema.Name && (o.mode == 0) == (l.mode == 0) })
	}
	first := oa.lists()
	for _, l := range first {
		d := StateDiff{Operator: oa.id, Name: l.schema.Name, Kind: l.schema.Kind, Mode: l.mode}
		i := match(second, l)
		if i < 0 {
			d.In = First
			out = append(out, d)
			continue
		}
		if d.Problem = incomparable(l, second[i]); d.Problem == "" {
			if err := d.items(ctx, a, b, oa, ob, &l, &second[i]); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	for _, l := range second {
		if match(first, l) < 0 {
			out = append(out, StateDiff{Operator: ob.id, Name: l.schema.Name, Kind: l.schema.Kind, Mode: l.mode, In: Second})
		}
	}
	return out, nil
}

// incomparable says why the items of two list states cannot be compared; empty: they can.
func incomparable(a, b list) string {
	switch {
	case a.schema.Kind != b.schema.Kind || a.mode != b.mode:
		return fmt.Sprintf("kind is %s and %s", a.kind(), b.kind())
	case a.schema != b.schema:
		return fmt.Sprintf("type is %s and %s", a.types(), b.types())
	}
	return ""
}

func (l *list) kind() string {
	if l.mode == 0 {
		return l.schema.Kind
	}
	return l.schema.Kind + " (" + l.mode.String() + ")"
}

func (l *list) types() string {
	if l.schema.KeyType == "" {
		return l.schema.ValueType
	}
	return l.schema.KeyType + " -> " + l.schema.ValueType
}
