// Package lsm is sorted keys and values on a disk of the host: a Pebble database that is written by whole sorted files only.
//
// Owns: the database of one operator in one attempt, its directory, the names of its files in snapshots, and when its files are merged.
//
// Promises: what a Write has taken is in the store whole or not at all; nothing goes through a log or a memtable. A View does not change. Linked files are
// exactly the state after the last Write, are never changed, and two of them with the same name have the same content. Nothing is synced: the directory
// is of use to this process only, and what must survive is written elsewhere. An error of the disk is returned by the call that met it or by the next one,
// and names the directory; it never ends the process.
//
// Goroutines: those that Pebble starts, until Close. Get and the methods of a View may be called from any goroutine, beside one that calls Write, Link
// and Tidy.
//
// Not here: what keys and values mean, but for the key group in the first two bytes of each key; the part of them that is in memory (package cached).
//
// Start at: store.go, then write.go, link.go, restore.go and tidy.go.
package lsm
