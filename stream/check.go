package stream

import (
	"fmt"

	"github.com/weirstream/weir/stream/codec"
)

// StateChecker is an operator that knows, without any data, whether it can take over keyed states that were written with the given schemas.
type StateChecker interface {
	CheckStates(written []StateSchema) error
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
	if values, err = codec.Resolve(t.of.codec, written.ValueType); err != nil {
		return nil, nil, fmt.Errorf("value: %w", err)
	}
	return keys, values, nil
}

func sameKind(written StateSchema, kind string) error {
	if written.Kind == kind {
		return nil
	}
	return fmt.Errorf("it was written as a state of kind %q and is declared as one of kind %q: declare it as it was, or give the operator another id and leave its state behind",
		written.Kind, kind)
}
