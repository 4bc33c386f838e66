package inspect

import (
	"context"

	"github.com/weirstream/weir/internal/job"
)

// OperatorList is the kind of operator list state; those of keyed states are in their schemas.
const OperatorList = "operator-list"

// StateReport is what is in a keyed state, or in operator list state, which has no name and no types.
type StateReport struct {
	Operator     string
	Name         string
	Kind         string
	KeyType      string
	ValueType    string
	Entries      int64 // of operator list state: items
	Bytes        int64 // of keys and values, or items
	LargestGroup int   // the key group with the most bytes, the first of several
	LargestBytes int64
	KeyGroups    job.KeyGroupRange
}

// States counts what is in each state, in graph order and order of declaration. It reads all keyed state, a key group at a time.
func (s *Stored) States(ctx context.Context) ([]StateReport, error) {
	all, err := s.operators()
	if err != nil {
		return nil, err
	}
	out := []StateReport{}
	for _, o := range all {
		keyed, err := s.keyedStates(ctx, o)
		if err != nil {
			return nil, err
		}
		out = append(out, keyed...)
		if o.hasItems() {
			list, err := s.listState(ctx, o)
			if err != nil {
				return nil, err
			}
			out = append(out, list)
		}
	}
	return out, nil
}

func (s *Stored) keyedStates(ctx context.Context, o *operator) ([]StateReport, error) {
	out, all := make([]StateReport, len(o.states)), o.keyGroups()
	for i, d := range o.states {
		out[i] = StateReport{Operator: o.id, Name: d.Name, Kind: d.Kind, KeyType: d.KeyType, ValueType: d.ValueType, KeyGroups: all}
	}
	r := s.groups(o)
	defer r.close()
	for group := all.Start; group < all.End; group++ {
		sizes := make([]int64, len(out))
		err := r.group(ctx, group, func(n int, key, value []byte) error {
			out[n].Entries++
			sizes[n] += int64(len(key) + len(value))
			return nil
		})
		if err != nil {
			return nil, err
		}
		for n, size := range sizes {
			out[n].Bytes += size
			if size > out[n].LargestBytes {
				out[n].LargestGroup, out[n].LargestBytes = group, size
			}
		}
	}
	return out, nil
}

func (s *Stored) listState(ctx context.Context, o *operator) (StateReport, error) {
	out := StateReport{Operator: o.id, Kind: OperatorList}
	err := s.items(ctx, o, func(item []byte) {
		out.Entries++
		out.Bytes += int64(len(item))
	})
	return out, err
}
