// Package linked is maps in a table: for each key of keyed state a map whose entries are rows of their own, linked in the order in which they were put.
//
// Owns: the rows of the entries, the rows that say where the entries of a key begin and end, and the links between them.
//
// Promises: putting, getting and deleting costs a few rows however large a map is; going through the map of one key touches no other; a map may
// be changed while it is gone through. The tables below need no order of their own, so they can be in memory or in any store of keys and values.
//
// Goroutines: none. A Map has one owner, the task loop; a View is read by one goroutine beside it.
//
// Not here: encoding, snapshots of tables, and when entries expire (package stream).
//
// Start at: map.go, then walk.go.
package linked
