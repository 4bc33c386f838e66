// Package examples lists the jobs that are built into the stock binaries.
//
// Owns: the list. Each job is a package of its own below this one; data/ has a sample of input.
//
// Promises: names do not change.
//
// Goroutines: none.
//
// Start at: Jobs.
package examples

import (
	"github.com/weirstream/weir/examples/flights"
	"github.com/weirstream/weir/examples/wordcount"
	"github.com/weirstream/weir/stream"
)

// Jobs returns the built-in jobs.
func Jobs() []stream.Definition {
	return []stream.Definition{flights.Definition(), wordcount.Definition()}
}
