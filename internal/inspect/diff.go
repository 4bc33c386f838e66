package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirstream/weir/internal/job"
)

// Side says which of two checkpoints has something.
type Side int

// The sides.
const (
	Both Side = iota
	First
	Second
)

// StateDiff is how a state differs between two checkpoints.
type StateDiff struct {
	Operator string
	Name     string // empty: the items of a source or a sink
	Kind     string
	Mode     job.ListMode // of a list state with a name
	In       Side         // if not Both, nothing below is set
	Problem  string       // why entries, or their values, were not compared; empty: they were
	Added    KeysDiff
	Removed  KeysDiff
	Changed  KeysDiff
	Same     int64 // entries
}

// KeysDiff counts keys, or items of operator list state.
type KeysDiff struct {
	Count int64
	Keys  []json.RawMessage // the first ones by key group, then by their encoding; none of operator list state
}

// Differs tells whether anything is not the same, or could not be compared.
func (d *StateDiff) Differs() bool {
	return d.In != Both || d.Problem != "" || d.Added.Count+d.Removed.Count+d.Changed.Count > 0
}

// Diff compares the state of all operators in two checkpoints, at most a key group of each in memory at a time; of operator list state it keeps a hash of
// each item, since the items have no order across subtasks. limit is how many keys are named of each difference.
func Diff(ctx context.Context, a, b *Stored, limit int) ([]StateDiff, error) {
	first, err := a.operators()
	if err != nil {
		return nil, err
	}
	second, err := b.operators()
	if err != nil {
		return nil, err
	}
	out := []StateDiff{}
	for _, o := range first {
		i := slices.IndexFunc(second, func(other *operator) bool { return other.id == o.id })
		if i < 0 {
			out = append(out, onlyIn(First, o)...)
			continue
		}
		list, err := diffOperator(ctx, a, b, o, second[i], limit)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	for _, o := range second {
		if !slices.ContainsFunc(first, func(other *operator) bool { return other.id == o.id }) {
			out = append(out, onlyIn(Second, o)...)
		}
	}
	return out, nil
}

func onlyIn(side Side, o *operator) (out []StateDiff) {
	for _, d := range o.states {
		out = append(out, StateDiff{Operator: o.id, Name: d.Name, Kind: d.Kind, In: side})
	}
	for _, l := range o.lists() {
		out = append(out, StateDiff{Operator: o.id, Name: l.schema.Name, Kind: l.schema.Kind, Mode: l.mode, In: side})
	}
	return out
}

func diffOperator(ctx context.Context, a, b *Stored, oa, ob *operator, limit int) ([]StateDiff, error) {
	c := comparison{a: a.groups(oa), b: b.groups(ob), limit: limit, ofA: make([]*pair, len(oa.states)), ofB: make([]*pair, len(ob.states))}
	defer c.a.close()
	defer c.b.close()
	c.pair()
	if slices.ContainsFunc(c.pairs, func(p *pair) bool { return p.compared }) {
		for group := range oa.vertex.MaxParallelism {
			if err := c.group(ctx, group); err != nil {
				return nil, err
			}
		}
	}
	var out []StateDiff
	for _, p := range c.pairs {
		out = append(out, p.StateDiff)
	}
	lists, err := diffLists(ctx, a, b, oa, ob)
	return append(out, lists...), err
}

// comparison goes through the keyed states of one operator.
type comparison struct {
	a, b     *groupReader
	limit    int
	pairs    []*pair
	ofA, ofB []*pair // by number of the state; nil where it is not compared
}

// pair is a state on both sides.
type pair struct {
	StateDiff
	of       *declared
	compared bool // by key
	values   bool // by value too

	// Of the key group at hand.
	old            map[string]string
	added, changed []string
}

// pair finds what can be compared.
func (c *comparison) pair() {
	oa, ob := c.a.operator, c.b.operator
	for i, d := range oa.states {
		p := &pair{StateDiff: StateDiff{Operator: oa.id, Name: d.Name, Kind: d.Kind}, of: &oa.states[i]}
		c.pairs = append(c.pairs, p)
		n := ob.state(d.Name)
		if n < 0 {
			p.In = First
			continue
		}
		other := ob.states[n]
		switch {
		case oa.vertex.MaxParallelism != ob.vertex.MaxParallelism:
			p.Problem = fmt.Sprintf("max parallelism is %d and %d", oa.vertex.MaxParallelism, ob.vertex.MaxParallelism)
		case d.Kind != other.Kind:
			p.Problem = fmt.Sprintf("kind is %s and %s", d.Kind, other.Kind)
		case d.KeyType != other.KeyType:
			p.Problem = fmt.Sprintf("key type is %s and %s", d.KeyType, other.KeyType)
		case d.NamespaceType != other.NamespaceType:
			p.Problem = fmt.Sprintf("namespace type is %q and %q", d.NamespaceType, other.NamespaceType)
		case d.MapKeyType != other.MapKeyType:
			p.Problem = fmt.Sprintf("type of the keys in the maps is %s and %s", d.MapKeyType, other.MapKeyType)
		case (d.TTL == 0) != (other.TTL == 0):
			p.compared = true
			c.ofA[i], c.ofB[n] = p, p
			p.Problem = "entries expire in one of them: only keys were compared"
		default:
			p.compared, p.values = true, d.ValueType == other.ValueType
			c.ofA[i], c.ofB[n] = p, p
			if !p.values {
				p.Problem = fmt.Sprintf("value type is %s and %s: only keys were compared", d.ValueType, other.ValueType)
			}
		}
	}
	for _, d := range ob.states {
		if oa.state(d.Name) < 0 {
			c.pairs = append(c.pairs, &pair{StateDiff: StateDiff{Operator: ob.id, Name: d.Name, Kind: d.Kind, In: Second}})
		}
	}
}

// group compares one key group, whichever subtasks have it.
func (c *comparison) group(ctx context.Context, group int) error {
	for _, p := range c.pairs {
		p.old, p.added, p.changed = map[string]string{}, nil, nil
	}
	err := c.a.group(ctx, group, func(n int, key, value []byte) error {
		if p := c.ofA[n]; p != nil {
			p.old[string(key)] = string(value)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.a.stored.Location, err)
	}
	err = c.b.group(ctx, group, func(n int, key, value []byte) error {
		if p := c.ofB[n]; p != nil {
			p.meet(key, value)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.b.stored.Location, err)
	}
	for _, p := range c.pairs {
		if !p.compared {
			continue
		}
		err := errors.Join(p.Added.add(p.added, p.of, c.limit), p.Removed.add(slices.Collect(maps.Keys(p.old)), p.of, c.limit),
			p.Changed.add(p.changed, p.of, c.limit))
		if err != nil {
			return fmt.Errorf("operator %s state %s: key: %w", p.Operator, p.Name, err)
		}
	}
	return nil
}

// meet takes an entry of the second side. What is left in old at the end is not there any more.
func (p *pair) meet(key, value []byte) {
	old, ok := p.old[string(key)]
	if !ok {
		p.added = append(p.added, string(key))
		return
	}
	delete(p.old, string(key))
	switch {
	case !p.values:
	case old == string(value):
		p.Same++
	default:
		p.changed = append(p.changed, string(key))
	}
}

func (d *KeysDiff) add(keys []string, of *declared, limit int) error {
	d.Count += int64(len(keys))
	if len(d.Keys) >= limit {
		return nil
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), limit-len(d.Keys))] {
		text, err := of.idJSON([]byte(key))
		if err != nil {
			return err
		}
		d.Keys = append(d.Keys, text)
	}
	return nil
}

// items compares the items of a list state, wherever they are.
func (d *StateDiff) items(ctx context.Context, a, b *Stored, oa, ob *operator, la, lb *list) error {
	left := map[[sha256.Size]byte]int64{}
	err := a.items(ctx, oa, la, func(_ int, item []byte) error {
		left[sha256.Sum256(item)]++
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", a.Location, err)
	}
	err = b.items(ctx, ob, lb, func(_ int, item []byte) error {
		sum := sha256.Sum256(item)
		if left[sum] > 0 {
			left[sum]--
			d.Same++
			return nil
		}
		d.Added.Count++
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", b.Location, err)
	}
	for _, n := range left {
		d.Removed.Count += n
	}
	return nil
}
