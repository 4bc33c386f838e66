// Package location holds the rules for the names of directories that people write: an absolute path, or a URL.
//
// Owns: how locations are joined, split and compared. A URL of an object store may carry settings behind a question mark; they stay at the end,
// and belong to no name.
//
// Promises: pure functions over text; nothing is looked up. Names are taken as they are, without any encoding.
//
// Goroutines: none.
//
// Not here: what is at a location (package storage and those below it).
//
// Start at: location.go.
package location
