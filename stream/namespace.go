package stream

import (
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/stream/codec"
)

// Namespaced is a key with a namespace, such as a window: a state declared for such keys holds an entry for each key and namespace.
//
//	perWindow := stream.NewReducing[stream.Namespaced[string, Window], int64]("sum", add)
//	stream.Process(byName, "sums", func(c *stream.Context[string], v Event, emit func(Sum) error) error {
//		perWindow.Add(stream.In(c, windowOf(v)), v.Amount)
//		return nil
//	}, stream.PerNamespace(perWindow))
//
// All entries of a key are in the key group of the key. What a namespace may be is what a key may be.
type Namespaced[K, N comparable] struct {
	Key       K
	Namespace N
}

func (Namespaced[K, N]) namespaced() {}

// In is the context of the current key in a namespace. The namespaces of an operator are those of the states that were declared by PerNamespace, and of
// the timers of ProcessWithTimersIn.
func In[K, N comparable](c *Context[K], ns N) *Context[Namespaced[K, N]] {
	n := namespaceOf[N](c.op)
	if n == nil {
		panic(fmt.Sprintf("namespace of type %s: no state of the operator has such namespaces: declare one with PerNamespace and name it in Process", typeName[N]()))
	}
	return &Context[Namespaced[K, N]]{
		key: Namespaced[K, N]{c.key, ns}, hash: n.hashIn(c.hash, ns, c.op.maxParallelism), ts: c.ts, tables: c.tables, op: c.op,
	}
}

// namespace is a type of namespaces of an operator.
type namespace[N comparable] struct {
	hash  func(N) uint64
	codec codec.Codec[N]
}

func newNamespace[N comparable]() (*namespace[N], error) {
	hash, err := codec.Hash[N]()
	if err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	c, err := codec.For[N]()
	if err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	return &namespace[N]{hash, c}, nil
}

// hashIn is the hash of a key in a namespace, given that of the key.
func (n *namespace[N]) hashIn(key uint64, ns N, maxParallelism int) uint64 {
	return job.HashInGroupOf(key, job.MixHashes(key, n.hash(ns)), maxParallelism)
}

// namespaceOf is nil when the operator has no such namespaces.
func namespaceOf[N comparable](op *operatorContext) *namespace[N] {
	for _, n := range op.namespaces {
		if n, ok := n.(*namespace[N]); ok {
			return n
		}
	}
	return nil
}

// addTo makes the namespaces known to an operator.
func (n *namespace[N]) addTo(op *operatorContext) {
	if namespaceOf[N](op) == nil {
		op.namespaces = append(op.namespaces, n)
	}
}

// PerNamespace makes a state that is declared for keys with namespaces a state of an operator with such keys.
func PerNamespace[K, N comparable](s State[Namespaced[K, N]]) State[K] {
	n, err := newNamespace[N]()
	var key K
	if _, nested := any(key).(interface{ namespaced() }); nested && err == nil {
		err = errors.New("its namespaces are in namespaces: declare it for keys with one namespace, which may be a struct")
	}
	return &perNamespace[K, N]{s, n, err}
}

type perNamespace[K, N comparable] struct {
	state     State[Namespaced[K, N]]
	namespace *namespace[N]
	err       error
}

func (*perNamespace[K, N]) inNamespaces() {}

func (s *perNamespace[K, N]) name() string { return s.state.name() }

func (s *perNamespace[K, N]) bind(index int, operator string) error {
	if s.err != nil {
		return fmt.Errorf("state %q of operator %s: %w", s.name(), operator, s.err)
	}
	return s.state.bind(index, operator)
}

func (s *perNamespace[K, N]) newTable(env *Env, op *operatorContext, keys keyForm[K]) table {
	s.namespace.addTo(op)
	return s.state.newTable(env, op, namespacedKeys(keys, s.namespace, env.MaxParallelism))
}

// namespacedKeys is the form of keys with a namespace: the key, then the namespace.
func namespacedKeys[K, N comparable](keys keyForm[K], n *namespace[N], maxParallelism int) keyForm[Namespaced[K, N]] {
	return keyForm[Namespaced[K, N]]{
		codec: namespacedCodec[K, N]{keys.codec, n.codec},
		hash: func(k Namespaced[K, N]) uint64 {
			return n.hashIn(keys.hash(k.Key), k.Namespace, maxParallelism)
		},
		describe: func(s *StateSchema) {
			keys.describe(s)
			s.NamespaceType = n.codec.Schema()
		},
		read: func(written StateSchema) (codec.Codec[Namespaced[K, N]], error) {
			if written.NamespaceType == "" {
				return nil, errors.New("it was written without namespaces and is declared by PerNamespace: declare it without, or give the operator another id and leave its state behind")
			}
			ns, err := codec.ResolveKey(n.codec, written.NamespaceType)
			if err != nil {
				return nil, fmt.Errorf("namespace: %w", err)
			}
			written.NamespaceType = ""
			k, err := keys.read(written)
			return namespacedCodec[K, N]{k, ns}, err
		},
	}
}

// namespacedCodec writes the key and then the namespace.
type namespacedCodec[K, N comparable] struct {
	keys       codec.Codec[K]
	namespaces codec.Codec[N]
}

// Append implements codec.Codec.
func (c namespacedCodec[K, N]) Append(dst []byte, k Namespaced[K, N]) ([]byte, error) {
	dst, err := c.keys.Append(dst, k.Key)
	if err != nil {
		return dst, err
	}
	return c.namespaces.Append(dst, k.Namespace)
}

// Decode implements codec.Codec.
func (c namespacedCodec[K, N]) Decode(src []byte) (k Namespaced[K, N], rest []byte, err error) {
	if k.Key, rest, err = c.keys.Decode(src); err != nil {
		return k, src, err
	}
	if k.Namespace, rest, err = c.namespaces.Decode(rest); err != nil {
		return k, src, fmt.Errorf("namespace: %w", err)
	}
	return k, rest, nil
}

// Schema implements codec.Codec.
func (c namespacedCodec[K, N]) Schema() string {
	return c.keys.Schema() + " in " + c.namespaces.Schema()
}

// Owned implements codec.Owner.
func (c namespacedCodec[K, N]) Owned() func(k, before Namespaced[K, N]) Namespaced[K, N] {
	key, ns := codec.Owned(c.keys), codec.Owned(c.namespaces)
	if key == nil && ns == nil {
		return nil
	}
	return func(k, before Namespaced[K, N]) Namespaced[K, N] {
		if key != nil {
			k.Key = key(k.Key, before.Key)
		}
		if ns != nil {
			k.Namespace = ns(k.Namespace, before.Namespace)
		}
		return k
	}
}
