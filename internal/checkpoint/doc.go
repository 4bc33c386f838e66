// Package checkpoint is the vocabulary of checkpoints: state handles, metadata and its format on disk, paths, and the pure rules of what
// a restore gives to which task.
//
// Owns: the meaning of every byte range that a checkpoint refers to, and the format of _metadata.
//
// Promises: everything is a pure function over values; reading damaged bytes gives an error that names what is wrong, never a panic.
//
// Goroutines: none.
//
// Not here: reading and writing files (package storage), the protocol (package coordinator), the state itself (package state).
//
// Start at: types.go, then metadata.go for the format and restore.go for who gets what.
package checkpoint
