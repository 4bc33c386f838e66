// Package stateschema says from schemas alone whether the states that a job declares can take over what a checkpoint has.
//
// Owns: that rule, for those who have the job's graph and not its code. Package stream has the same rule where the code is; a test holds them together.
//
// Promises: what it refuses, every task would refuse. State of codecs of the job's own is left to the tasks.
//
// Goroutines: none.
//
// Not here: what the schemas of values allow (stream/codec), and which operator gets what (internal/checkpoint).
//
// Start at: Check.
package stateschema
