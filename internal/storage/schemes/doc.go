// Package schemes opens the storage that a location means.
//
// Owns: which kinds of storage are linked in, and how a location is taken apart.
//
// Promises: an error is one line that names the location and says what to do. Opening for work finds a wrong setting at once, and not at the
// first checkpoint; looking writes nothing.
//
// Goroutines: none of its own.
//
// Not here: the storages themselves (package storage), the text of locations (package location).
//
// Start at: schemes.go.
package schemes
