// Package storagetest tests implementations of storage.Storage, and has one in memory for the tests of others.
//
// Owns: the conformance suite Run, and the fake Mem.
//
// Promises: Mem passes the suite. It does what it is told in the order of the calls, without time or chance of its own.
//
// Goroutines: none of its own; Mem may be used by any number.
//
// Not here: what only files on a disk can do wrong; that is tested beside storage.Local.
//
// Start at: suite.go for the contract as tests, mem.go for the fake.
package storagetest
