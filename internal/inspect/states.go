package inspect

import (
	"context"

	"github.com/weirstream/weir/internal/job"
)

// OperatorList is the kind of the items of sources and sinks; those of other states are in their schemas.
const OperatorList = "operator-list"

// StateReport is what is in a keyed state, in a list state, or in the items of a source or a sink, which have no name and no types.
type StateReport struct {
	Operator  string
	Name      string
	Kind      string
	Mode      job.ListMode // of a list state with a name; of a broadcast state one copy is counted
	KeyType   string
	ValueType string

	NamespaceType string // see checkpoint.StateSchema
	MapKeyType    string
	TTL           int64

	Entries      int64 // of a list state: items
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
		for _, l := range o.lists() {
			report, err := s.listReport(ctx, o, &l)
			if err != nil {
				return nil, err
			}
			out = append(out, report)
		}
	}
	return out, nil
}

func (s *Stored) keyedStates(ctx context.Context, o *operator) ([]StateReport, error) {
	out, all := make([]StateReport, len(o.states)), o.keyGroups()
	for i, d := range o.states {
		out[i] = StateReport{Operator: o.id, Name: d.Name, Kind: d.Kind, KeyType: d.KeyType, ValueType: d.ValueType, NamespaceType: d.NamespaceType, MapKeyType: d.MapKeyType, TTL: d.TTL, KeyGroups: all}
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
