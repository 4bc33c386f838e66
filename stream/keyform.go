package stream

import (
	"errors"

	"github.com/weirstream/weir/stream/codec"
)

// keyForm is how the keys of a table are written and found: keys as they are, or keys with a namespace.
type keyForm[K comparable] struct {
	codec codec.Codec[K]
	hash  func(K) uint64 // in the key group of the key, which is the same in all namespaces
	// describe fills in the types of the keys.
	describe func(*StateSchema)
	// read gives the codec of keys that were written with another schema.
	read func(written StateSchema) (codec.Codec[K], error)
}

func plainKeys[K comparable](c codec.Codec[K], hash func(K) uint64) keyForm[K] {
	return keyForm[K]{
		codec: c, hash: hash,
		describe: func(s *StateSchema) { s.KeyType = c.Schema() },
		read: func(written StateSchema) (codec.Codec[K], error) {
			if written.NamespaceType != "" {
				return nil, errors.New("it was written with namespaces and is declared without: declare it by PerNamespace, or give the operator another id and leave its state behind")
			}
			return codec.ResolveKey(c, written.KeyType)
		},
	}
}
