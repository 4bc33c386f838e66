package codec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxSchemaDepth = 100     // types in types
	maxSchemaSize  = 1 << 20 // bytes
	maxArrayLen    = 1 << 30 // elements
)

// parseSchema reads what node.String writes.
func parseSchema(s string) (*node, error) {
	if len(s) > maxSchemaSize {
		return nil, fmt.Errorf("longer than %d bytes", maxSchemaSize)
	}
	p := &parser{text: s}
	n, err := p.node(0)
	if err != nil {
		return nil, err
	}
	if p.rest() != "" {
		return nil, p.errorf("something after the end")
	}
	return n, nil
}

// parser reads a schema from left to right.
type parser struct {
	text string
	pos  int
}

func (p *parser) rest() string { return p.text[p.pos:] }

func (p *parser) take(prefix string) bool {
	if !strings.HasPrefix(p.rest(), prefix) {
		return false
	}
	p.pos += len(prefix)
	return true
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%s at byte %d", fmt.Sprintf(format, args...), p.pos)
}

func (p *parser) expect(s string) error {
	if !p.take(s) {
		return p.errorf("no %q", s)
	}
	return nil
}

// name reads letters, digits and _-. up to the next other character.
func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.rest())
		if !nameRune(r) {
			break
		}
		p.pos += size
	}
	return p.text[start:p.pos]
}

func (p *parser) node(depth int) (*node, error) {
	if depth > maxSchemaDepth {
		return nil, p.errorf("deeper than %d types", maxSchemaDepth)
	}
	switch {
	case p.take("*"):
		return p.holder(kindPointer, depth)
	case p.take("[]"):
		n, err := p.holder(kindSlice, depth)
		if err == nil && n.elem.kind == kindUint8 {
			return &node{kind: kindBytes}, nil
		}
		return n, err
	case p.take("["):
		return p.array(depth)
	case p.take("map["):
		return p.mapNode(depth)
	case p.take("struct{"):
		return p.structNode(depth)
	case p.take("proto("):
		return p.named(kindProto)
	case p.take("binary("):
		return p.named(kindBinary)
	}
	start := p.pos
	name := p.name()
	for k, known := range scalarNames {
		if known != "" && known == name {
			return &node{kind: kind(k).written()}, nil
		}
	}
	p.pos = start
	return nil, p.errorf("unknown type %q", name)
}

func (p *parser) holder(k kind, depth int) (*node, error) {
	elem, err := p.node(depth + 1)
	if err != nil {
		return nil, err
	}
	return &node{kind: k, elem: elem}, nil
}

func (p *parser) array(depth int) (*node, error) {
	length, err := strconv.Atoi(p.name())
	if err != nil || length < 0 || length > maxArrayLen {
		return nil, p.errorf("no array length")
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	n, err := p.holder(kindArray, depth)
	if err != nil {
		return nil, err
	}
	n.len = length
	return n, nil
}

func (p *parser) mapNode(depth int) (*node, error) {
	key, err := p.node(depth + 1)
	if err != nil {
		return nil, err
	}
	if err := p.expect("]"); err != nil {
		return nil, err
	}
	n, err := p.holder(kindMap, depth)
	if err != nil {
		return nil, err
	}
	n.key = key
	return n, nil
}

func (p *parser) named(k kind) (*node, error) {
	n := &node{kind: k, name: p.name()}
	if n.name == "" {
		return nil, p.errorf("no type name")
	}
	return n, p.expect(")")
}

func (p *parser) structNode(depth int) (*node, error) {
	n := &node{kind: kindStruct}
	names := map[string]bool{}
	for !p.take("}") {
		if len(n.fields) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		name := p.name()
		if name == "" {
			return nil, p.errorf("no field name")
		}
		if names[name] {
			return nil, p.errorf("second field %q", name)
		}
		names[name] = true
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		of, err := p.node(depth + 1)
		if err != nil {
			return nil, err
		}
		n.fields = append(n.fields, field{name: name, node: of})
	}
	return n, nil
}
