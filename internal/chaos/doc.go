// Package chaos holds the tests that kill real processes with SIGKILL while real jobs run on real files, and compare the answer.
//
// Owns: nothing but tests.
//
// Promises: an answer is compared as a whole, with one that was computed elsewhere.
//
// Goroutines: those of the tests.
//
// Not here: starting and killing processes (package harness), seeded faults without processes (package sim).
//
// Start at: chaos_test.go.
package chaos
