package stream

import (
	"fmt"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// StateChecker is an operator that knows, without any data, whether it can take over keyed states that were written with the given schemas.
type StateChecker interface {
	CheckStates(written []StateSchema) error
}

// StateDescriber is an operator that says which states it declares, with what they can read.
type StateDescriber interface {
	DescribeStates() []job.DeclaredState
}

// DescribeStates implements StateDescriber.
func (o *keyedOperator[K, T]) DescribeStates() []job.DeclaredState {
	var out []job.DeclaredState
	for _, t := range o.ctx.tables {
		var converts []string
		if c, ok := t.(interface{ converts() []string }); ok {
			converts = c.converts()
		}
		out = append(out, describe(t.schema(), 0, converts))
	}
	return out
}

func (t *valueTable[K, V]) converts() []string { return codec.Converts(t.of.codec) }

func describe(s StateSchema, mode job.ListMode, converts []string) job.DeclaredState {
	return job.DeclaredState{
		Name: s.Name, Kind: s.Kind, Mode: mode, KeyType: s.KeyType, ValueType: s.ValueType,
		NamespaceType: s.NamespaceType, MapKeyType: s.MapKeyType, TTL: s.TTL, Converts: converts,
	}
}

// ListChecker is an operator that knows, without any data, whether it can take over an operator state that was written with the given schema and mode.
type ListChecker interface {
	CheckList(written StateSchema, mode job.ListMode) error
}

// CheckStates implements StateChecker. It refuses what RestoreGroup would refuse.
func (o *keyedOperator[K, T]) CheckStates(written []StateSchema) error {
	for _, w := range written {
		t := o.tableNamed(w.Name)
		if t == nil {
			return fmt.Errorf("the checkpoint has a state %q that the operator no longer declares", w.Name)
		}
		if err := t.check(w); err != nil {
			return fmt.Errorf("state %q: %w", w.Name, err)
		}
	}
	return nil
}

func (t *valueTable[K, V]) check(written StateSchema) error {
	_, _, err := t.resolve(written)
	return err
}

// resolve gives the codecs that read what was written with other ones. A state of another kind is refused even if the types agree: what is
// stored for a key means something else.
func (t *valueTable[K, V]) resolve(written StateSchema) (keys codec.Codec[K], values codec.Codec[V], err error) {
	if err := sameKind(written, t.of.kind); err != nil {
		return nil, nil, err
	}
	if keys, err = t.keys.read(written); err != nil {
		return nil, nil, fmt.Errorf("key: %w", err)
	}
	if values, err = t.of.read(written, t.clock.now); err != nil {
		return nil, nil, fmt.Errorf("value: %w", err)
	}
	return keys, values, nil
}

// read gives the codec of values that were written with another schema. What was written without the times that are needed now gets the time now.
func (d *declaration[K, V]) read(written StateSchema, now Timestamp) (codec.Codec[V], error) {
	switch {
	case d.ttl != nil && written.TTL == 0:
		return d.untimed(written, now)
	case d.ttl == nil && written.TTL != 0 && d.timeless != nil:
		return d.timeless(written)
	case d.ttl == nil && written.TTL != 0:
		values, err := codec.Resolve(d.codec, written.ValueType)
		return timeless[V]{values}, err
	}
	return codec.Resolve(d.codec, written.ValueType)
}

func sameKind(written StateSchema, kind string) error {
	if written.Kind == kind {
		return nil
	}
	return fmt.Errorf("it was written as a state of kind %q and is declared as one of kind %q: declare it as it was, or give the operator another id and leave its state behind",
		written.Kind, kind)
}
