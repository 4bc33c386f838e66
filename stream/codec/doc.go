// Package codec turns typed Go values into bytes and back, for the exchange between processes and for state in checkpoints.
//
// Owns: the encoding of records, keys and state values; the schema text that describes an encoding; the rules by which bytes of an
// older build become values of today's types; the hash of keys.
//
// Promises: the encoding is deterministic (maps are sorted) and never changes: golden bytes in the tests hold it. The same is true of
// key hashes. Decoders never panic on damaged input, and allocate no more than a constant factor (given by the type) of its length. Codecs and
// hash functions may be used by many goroutines at once.
//
// The encoding: integers are varints (signed ones zigzag), of 8 bits one byte; floats are little endian; strings are a length and
// bytes; slices, maps and []byte are a length plus one (zero is nil); pointers are a flag and the value; protobuf messages are like
// []byte; times are seconds and nanoseconds since 1970 in UTC; structs are their exported fields in declared order, without names: the
// schema has those.
//
// Goroutines: none.
//
// Not here: framing of batches (the exchange), layout of state files.
//
// Start at: Codec, For; Dynamic is for tools that do not have the Go types.
package codec
