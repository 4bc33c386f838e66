package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Errors of Get.
var (
	ErrBadKey = errors.New("not a key of the state")
	ErrNoKey  = errors.New("the state has no value for the key")
)

// Entry is a key with its value.
type Entry struct {
	Operator string
	State    checkpoint.StateSchema
	Mode     job.ListMode // of a list state with a name, whose KeyGroup is 0
	KeyGroup int
	Subtask  int // whose snapshot has the key group
	Key      json.RawMessage
	Value    json.RawMessage
}

// Get finds the value of a key, which is written as codec.Dynamic.AppendKey wants it. Of the part that has the key group of the key, all bytes
// are verified, and that key group alone is decoded.
//
// Where a key may have several entries, because of namespaces, maps or timers, the value is the list of them. Where entries expire a value is an object of
// it and of the time of its last access, in milliseconds.
//
// Of a broadcast state it is the same, but for key groups; of another list state the key is the number of a subtask, and the value the list of its
// elements.
//
// It gives ErrUnknown when there is no such operator or keyed state, ErrBadKey when key is none of the state's type, ErrNoKey when nothing is there.
func (s *Stored) Get(ctx context.Context, operator, state, key string) (Entry, error) {
	o, n, err := s.find(operator, state)
	if err != nil {
		return Entry{}, err
	}
	if n < 0 {
		return s.getListed(ctx, o, o.list(state), key)
	}
	d := &o.states[n]
	wanted, err := d.keys.AppendKey(nil, key)
	if err != nil {
		return Entry{}, fmt.Errorf("%w %s of operator %s: %w", ErrBadKey, state, operator, err)
	}
	hash, err := d.keys.HashKey(wanted)
	if err != nil {
		return Entry{}, fmt.Errorf("%w %s of operator %s: %w", ErrBadKey, state, operator, err)
	}
	out := Entry{Operator: operator, State: d.StateSchema, KeyGroup: job.KeyGroupOf(hash, o.vertex.MaxParallelism)}
	if p := o.of(out.KeyGroup); p != nil {
		out.Subtask = p.subtask
	}
	r := s.groups(o)
	defer r.close()
	var value []byte
	var list []json.RawMessage
	found := false
	err = r.group(ctx, out.KeyGroup, func(of int, k, v []byte) error {
		if of != n || !bytes.HasPrefix(k, wanted) { // no encoded key is the beginning of another
			return nil
		}
		found = true
		if d.single() {
			value = bytes.Clone(v)
			return nil
		}
		entry, err := d.entryJSON(k[len(wanted):], v)
		list = append(list, entry)
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	if !found {
		return Entry{}, fmt.Errorf("key %s in state %s of operator %s: %w (it would be in key group %d)", key, state, operator, ErrNoKey, out.KeyGroup)
	}
	if out.Key, _, err = d.keys.JSON(wanted); err != nil {
		return Entry{}, err
	}
	if !d.single() {
		out.Value, err = json.Marshal(list)
		return out, err
	}
	if out.Value, _, err = d.values.JSON(value); err != nil {
		return Entry{}, r.damage(out.Subtask, "keyed state", fmt.Errorf("value of key %s: %w", key, err))
	}
	return out, nil
}
