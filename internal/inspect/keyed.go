package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/compression"
	"github.com/weirstream/weir/internal/job"
)

// ErrUnknown: the checkpoint has no such operator or state, or the operator has no keyed state.
var ErrUnknown = errors.New("not in the checkpoint")

// operator is the state of one operator in all subtasks.
type operator struct {
	id     string
	vertex *checkpoint.VertexState
	parts  []part // of subtasks that have state of it, ascending
	states []declared
}

// part is the state of an operator in one subtask.
type part struct {
	subtask int
	state   *checkpoint.OperatorState
}

// operators are those that have state, in graph order. A vertex that lacks a subtask is an error: what is not there would look like nothing.
func (s *Stored) operators() ([]*operator, error) {
	var out []*operator
	for i := range s.Metadata.Vertices {
		v := &s.Metadata.Vertices[i]
		if len(v.Subtasks) != v.Parallelism {
			return nil, fmt.Errorf("%s: the state of %d of the %d subtasks of vertex %s is in the metadata", s.Location, len(v.Subtasks), v.Parallelism, v.Vertex)
		}
		for _, op := range v.Operators {
			o := &operator{id: op.ID, vertex: v}
			for n := range v.Subtasks {
				for k := range v.Subtasks[n].Operators {
					if state := &v.Subtasks[n].Operators[k]; state.Operator == op.ID {
						o.parts = append(o.parts, part{v.Subtasks[n].Subtask, state})
					}
				}
			}
			if err := o.declare(); err != nil {
				return nil, fmt.Errorf("%s: operator %s: %w", s.Location, op.ID, err)
			}
			if len(o.parts) > 0 {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// declare finds the declared states, which are the same in all subtasks: they run one program.
func (o *operator) declare() error {
	var first *part
	for i := range o.parts {
		p := &o.parts[i]
		switch {
		case p.state.Keyed == nil:
		case first == nil:
			first = p
		case !slices.Equal(p.state.Keyed.States, first.state.Keyed.States):
			return fmt.Errorf("subtasks %d and %d have declared different states", first.subtask, p.subtask)
		}
	}
	if first == nil {
		return nil
	}
	for _, schema := range first.state.Keyed.States {
		d, err := newDeclared(schema)
		if err != nil {
			return fmt.Errorf("state %s%w", schema.Name, err)
		}
		o.states = append(o.states, d)
	}
	return nil
}

func (o *operator) state(name string) int {
	return slices.IndexFunc(o.states, func(d declared) bool { return d.Name == name })
}

// of finds the part that has a key group; nil: nobody has it.
func (o *operator) of(group int) *part {
	for i := range o.parts {
		if k := o.parts[i].state.Keyed; k != nil && k.Range.Contains(group) {
			return &o.parts[i]
		}
	}
	return nil
}

// find looks an operator and its state up by name. The number is that of a keyed state; -1: it is a list state.
func (s *Stored) find(id, state string) (*operator, int, error) {
	all, err := s.operators()
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(all, func(o *operator) bool { return o.id == id })
	if i < 0 {
		var ids []string
		for _, o := range all {
			ids = append(ids, o.id)
		}
		return nil, 0, fmt.Errorf("operator %q with state is %w (it has: %s)", id, ErrUnknown, orNothing(ids))
	}
	n := all[i].state(state)
	if n < 0 && all[i].list(state) == nil {
		var names []string
		for _, d := range all[i].states {
			names = append(names, d.Name)
		}
		for _, l := range all[i].lists() {
			if l.mode != 0 {
				names = append(names, l.schema.Name)
			}
		}
		return nil, 0, fmt.Errorf("state %q of operator %s is %w (its states: %s)", state, id, ErrUnknown, orNothing(names))
	}
	return all[i], n, nil
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// groupReader reads the keyed state of an operator, one key group at a time. What is decoded is verified before: the key group, or all of the part if
// only that has a checksum.
type groupReader struct {
	verifier
	operator *operator
	verified map[int]bool // by subtask
}

func (s *Stored) groups(o *operator) *groupReader {
	return &groupReader{verifier: verifier{stored: s}, operator: o, verified: map[int]bool{}}
}

// damage is an error that names operator and subtask; the error from below names the file.
func (r *groupReader) damage(subtask int, what string, err error) error {
	return fmt.Errorf("operator %s subtask %d: %s: %w", r.operator.id, subtask, what, err)
}

// group gives f each entry of a key group, with the number of its state. What f gets is valid during the call only.
func (r *groupReader) group(ctx context.Context, group int, f func(state int, key, value []byte) error) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	p := r.operator.of(group)
	if p == nil {
		return nil
	}
	k := p.state.Keyed
	if k.IsNative() {
		return fmt.Errorf("state of operator %s is in files of backend %q, which only that reads; take a canonical savepoint and look into that", r.operator.id, k.Backend)
	}
	if len(k.GroupCRC) == 0 && !r.verified[p.subtask] {
		if err := r.check(ctx, k.Handle); err != nil {
			return r.damage(p.subtask, "keyed state", err)
		}
		r.verified[p.subtask] = true
	}
	i := group - k.Range.Start
	data, err := r.bytes(ctx, k.Handle, k.Offsets[i], k.Offsets[i+1])
	if err == nil {
		err = k.VerifyGroups(data, job.KeyGroupRange{Start: group, End: group + 1})
	}
	if err == nil {
		data, err = r.raw(k.Handle, data)
	}
	if err != nil {
		return r.damage(p.subtask, "keyed state", err)
	}
	return r.operator.entries(data, f, func(err error) error {
		return r.damage(p.subtask, "keyed state", fmt.Errorf("%s: key group %d cannot be decoded: %w", k.Handle, group, err))
	})
}

// raw is what a stored part of a handle holds.
func (v *verifier) raw(h checkpoint.Handle, stored []byte) ([]byte, error) {
	if h.Compression == checkpoint.Uncompressed {
		return stored, nil
	}
	if v.decoder == nil {
		v.decoder = compression.NewDecoder()
	}
	raw, err := v.decoder.Append(nil, stored, h.Compression, h.RawLength)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h, err)
	}
	return raw, nil
}

// bytes reads a part of a handle, which must be verified before or behind.
func (v *verifier) bytes(ctx context.Context, h checkpoint.Handle, from, to int64) ([]byte, error) {
	if h.IsInline() {
		return h.Inline[from:to], nil
	}
	if err := v.open(ctx, h.Path); err != nil {
		return nil, err
	}
	data := make([]byte, to-from)
	if _, err := v.file.ReadAt(data, h.Offset+from); err != nil {
		return nil, fmt.Errorf("file %s cannot be read: %w", h.Path, err)
	}
	return data, nil
}

// keyGroups is what the parts have together.
func (o *operator) keyGroups() job.KeyGroupRange {
	var out job.KeyGroupRange
	for _, p := range o.parts {
		if k := p.state.Keyed; k != nil && k.Range.Len() > 0 {
			if out.Len() == 0 {
				out = k.Range
			}
			out = job.KeyGroupRange{Start: min(out.Start, k.Range.Start), End: max(out.End, k.Range.End)}
		}
	}
	return out
}
