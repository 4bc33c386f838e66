package stateschema

import (
	"fmt"
	"slices"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// Check says why an operator of g cannot take over its state of md; the error names operator, state and both schemas. A graph that says nothing of
// its states, because an older client has submitted it, is left to the tasks.
func Check(md *checkpoint.Metadata, g *job.Graph) error {
	if !slices.ContainsFunc(g.Vertices, func(v job.Vertex) bool { return len(v.States) > 0 }) {
		return nil
	}
	list, err := checkpoint.Compare(md, g, declared{g})
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Outcome == checkpoint.Incompatible {
			return fmt.Errorf("%w: %s %d: operator %s: %s", checkpoint.ErrIncompatible, md.Kind, md.ID, c.Operator, c.Detail)
		}
	}
	return nil
}

// declared is what the operators of a graph declare.
type declared struct{ graph *job.Graph }

// ReadsKeyed implements checkpoint.StateReader.
func (d declared) ReadsKeyed(operator string, written []checkpoint.StateSchema) error {
	for _, w := range written {
		if err := d.reads(operator, w, 0); err != nil {
			return fmt.Errorf("state %q: %w", w.Name, err)
		}
	}
	return nil
}

// ReadsList implements checkpoint.StateReader.
func (d declared) ReadsList(operator string, w checkpoint.StateSchema, mode job.ListMode) error {
	if err := d.reads(operator, w, mode); err != nil {
		return fmt.Errorf("state %q: %w", w.Name, err)
	}
	return nil
}

func (d declared) reads(operator string, w checkpoint.StateSchema, mode job.ListMode) error {
	for _, v := range d.graph.Vertices {
		for i := range v.States {
			if s := &v.States[i]; s.Operator == operator && s.Name == w.Name {
				return reads(s, w, mode)
			}
		}
	}
	return fmt.Errorf("the operator no longer declares it")
}

func reads(s *job.DeclaredState, w checkpoint.StateSchema, mode job.ListMode) error {
	if s.Kind != w.Kind || s.Mode != mode {
		return fmt.Errorf("it was written as %s and is declared as %s: declare it as it was, or under another name", named(w.Kind, mode), named(s.Kind, s.Mode))
	}
	if (w.NamespaceType == "") != (s.NamespaceType == "") {
		return fmt.Errorf("it was written with namespaces of type %q and is declared with %q: declare it as it was, or give the operator another id", w.NamespaceType, s.NamespaceType)
	}
	keys := codec.ReadsKey
	if mode != 0 {
		keys = readsDistinct // they have no hash there
	}
	for _, part := range []struct {
		what           string
		written, today string
		reads          func(written, today string) error
	}{
		{"key", w.KeyType, s.KeyType, keys},
		{"namespace", w.NamespaceType, s.NamespaceType, codec.ReadsKey},
		{"key of the maps", w.MapKeyType, s.MapKeyType, codec.ReadsKey},
		{valueName(s.Kind), many(s.Kind) + w.ValueType, many(s.Kind) + s.ValueType, func(written, today string) error { return readsValue(s, written, today) }},
	} {
		if part.written == part.today || !known(part.today) || !known(part.written) {
			continue
		}
		if err := part.reads(part.written, part.today); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}

func readsValue(s *job.DeclaredState, written, today string) error {
	err := codec.Reads(written, today)
	if err == nil {
		return nil
	}
	for _, old := range s.Converts {
		if codec.Reads(written, many(s.Kind)+old) == nil {
			return nil
		}
	}
	if len(s.Converts) > 0 {
		return fmt.Errorf("%w (no migration takes it either: they take %q)", err, s.Converts)
	}
	return err
}

// readsDistinct is for keys that have no hash, but must stay different.
func readsDistinct(written, today string) error {
	return codec.Reads("map["+written+"]struct{}", "map["+today+"]struct{}")
}

// known tells whether a schema is that of a built-in codec; an empty one stands for nothing.
func known(schema string) bool {
	_, err := codec.NewDynamic(schema)
	return err == nil
}

// many is what is in front of the value type in the schema of what is stored: a list state names the type of its elements.
func many(kind string) string {
	if kind == "list" {
		return "[]"
	}
	return ""
}

func valueName(kind string) string {
	if kind == "list" || kind == "operator-list" {
		return "element"
	}
	return "value"
}

func named(kind string, mode job.ListMode) string {
	if mode == 0 {
		return fmt.Sprintf("keyed state of kind %q", kind)
	}
	return fmt.Sprintf("%s state of kind %q", mode, kind)
}
