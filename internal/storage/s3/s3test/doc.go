// Package s3test runs an object store for tests, and breaks the line to it.
//
// Owns: the processes that it starts, and what is in their directory; it ends no others.
//
// Promises: the server is versitygw as tools/go.mod names it, built when it is not in Go's cache. A test that needs it fails without it, and is never
// skipped.
//
// Goroutines: one that waits for the process; those of Proxy. Stop waits for them.
//
// Not here: anything of the product. Only tests and tools import this package.
//
// Start at: server.go, then proxy.go for the faults.
package s3test
