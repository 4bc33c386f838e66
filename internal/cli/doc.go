// Package cli is the command lines of the binaries: weir, jobmaster, taskexecutor, and those that package stream/app makes of a user's jobs.
//
// Owns: flags, environment variables, exit codes, what people read and what scripts read (docs/cli.md).
//
// Promises: an error is one line on stderr that names the thing and the remedy. Exit codes: 0 done, 1 failed, 2 used wrongly, 3 the job was
// canceled, 130 interrupted twice. The JSON output changes by additions only. Nothing here is global: two command lines fit in one process.
//
// Goroutines: a run that follows a job has one that watches and one that cancels; both are gone when it returns.
//
// Not here: behaviour. A command parses, makes calls of the gateway or starts a node, and prints.
//
// Start at: process.go, weir.go; then one file per command.
package cli
