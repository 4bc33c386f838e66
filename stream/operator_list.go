package stream

import (
	"fmt"
	"iter"
	"slices"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// ListState is operator state: a list of elements that belongs to a subtask. When a job continues at another parallelism, the elements of all subtasks
// are dealt out again; see NewListState and NewUnionListState. An operator may have several. What an element refers to must not be changed once it
// is in the list.
//
// The list is in memory, and each checkpoint writes it whole. It is for offsets, buffers and the like: what belongs to a key is better kept by key.
type ListState[E any] struct {
	operatorDeclaration
	codec codec.Codec[E]
	own   func(v, before E) E // nil: elements hold no strings
	plain bool                // nobody changes what an element refers to
}

// NewListState declares a list state whose elements are split. At the same parallelism each subtask gets back its own. At another one the elements
// of all subtasks are laid end to end, in the order of the subtasks, and cut evenly; where the first share goes differs from state to state. The
// name is part of the checkpoint: it must stay the same between versions.
func NewListState[E any](name string) *ListState[E] { return newListState[E](name, job.Split) }

// NewUnionListState declares a list state of which every subtask gets all elements of all subtasks, at the same parallelism too. An operator usually
// keeps its own part of them when it opens, since otherwise the state grows with each restore. The name is part of the checkpoint.
//
// While some of the operator's subtasks have reached the end of their input and others have not, no checkpoint completes: the elements of those that
// have finished would be lost.
func NewUnionListState[E any](name string) *ListState[E] { return newListState[E](name, job.Union) }

func newListState[E any](name string, mode job.ListMode) *ListState[E] {
	s := &ListState[E]{operatorDeclaration: operatorDeclaration{id: name, mode: mode}, plain: codec.Plain[E]()}
	if s.codec, s.err = codec.For[E](); s.err == nil {
		s.own = codec.Owned(s.codec)
	}
	return s
}

// Append puts e behind the elements.
func (s *ListState[E]) Append(c *OperatorContext, e E) {
	h := s.in(c)
	h.items = append(h.items, s.owned(e)) // what snapshots and iterators see lies before: see List
}

// All gives the elements, oldest first, as they were when All was called: the list may be changed meanwhile.
func (s *ListState[E]) All(c *OperatorContext) iter.Seq[E] { return slices.Values(s.in(c).items) }

// Len is the number of elements.
func (s *ListState[E]) Len(c *OperatorContext) int { return len(s.in(c).items) }

// Set replaces the elements by a copy of elements.
func (s *ListState[E]) Set(c *OperatorContext, elements []E) {
	h := s.in(c)
	list := slices.Clone(elements)
	for i, e := range list {
		list[i] = s.owned(e)
	}
	h.items = list
}

// Clear takes all elements away.
func (s *ListState[E]) Clear(c *OperatorContext) { s.in(c).items = nil }

func (s *ListState[E]) owned(e E) E {
	if s.own == nil {
		return e
	}
	var nothing E
	return s.own(e, nothing)
}

func (s *ListState[E]) in(c *OperatorContext) *listHolder[E] {
	return held(c.holders, &s.operatorDeclaration, func(h *listHolder[E]) bool { return h.of == s })
}

func (s *ListState[E]) newHolder() holder { return &listHolder[E]{of: s} }

// listHolder is the list of one subtask. The array behind items is written behind the end of items only, so views of it stay as they are.
type listHolder[E any] struct {
	of    *ListState[E]
	items []E
}

func (h *listHolder[E]) schema() StateSchema {
	return StateSchema{Name: h.of.id, Kind: kindOperatorList, ValueType: h.of.codec.Schema()}
}

func (h *listHolder[E]) mode() job.ListMode { return h.of.operatorDeclaration.mode }

func (h *listHolder[E]) converts() []string { return codec.Converts(h.of.codec) }

func (h *listHolder[E]) snapshot() (ListSnapshot, error) {
	items := slices.Clip(h.items)
	snap := ListSnapshot{Schema: h.schema(), Mode: h.mode(), Len: len(items)}
	snap.Append = func(dst []byte, i int) ([]byte, error) { return h.of.codec.Append(dst, items[i]) }
	return snap.now(h.of.plain)
}

// now encodes the items at once, unless nobody can change what they refer to.
func (s ListSnapshot) now(plain bool) (ListSnapshot, error) {
	if plain {
		return s, nil
	}
	encoded := make([][]byte, s.Len)
	for i := range encoded {
		var err error
		if encoded[i], err = s.Append(nil, i); err != nil {
			return s, err
		}
	}
	s.Append = func(dst []byte, i int) ([]byte, error) { return append(dst, encoded[i]...), nil }
	return s, nil
}

func (h *listHolder[E]) check(written StateSchema) error {
	_, err := resolveWritten("element", h.of.codec, written.ValueType)
	return err
}

func (h *listHolder[E]) restore(written StateSchema, items [][]byte) error {
	c, err := resolveWritten("element", h.of.codec, written.ValueType)
	if err != nil {
		return err
	}
	h.items = slices.Grow(h.items, len(items))
	for i, item := range items {
		e, rest, err := c.Decode(item)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%d bytes left over", len(rest))
		}
		if err != nil {
			return fmt.Errorf("decode element %d: %w", i+1, err)
		}
		h.items = append(h.items, e)
	}
	return nil
}
