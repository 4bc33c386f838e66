// Package state is keyed state in memory: a table partitioned by key group, with snapshots that cost no copy of the data.
//
// Owns: the layout of a table in memory, and which part of it a snapshot still needs.
//
// Promises: taking a snapshot costs a few words per key group whatever the number of entries; a page (up to 64 entries) is copied only
// when it is written while a snapshot can see it whose key group is not released; no operation moves more than one chain of pages of entries, so
// there is no rehash of the whole table; pages of keys and values without pointers are never scanned by the garbage collector. The order in
// which entries are visited depends on the operations made before, on nothing else. Pages emptied by deletes are merged; the directory
// of a key group shrinks when the group is empty.
//
// Goroutines: none. A table has one owner, the task loop. A snapshot may be read and released on other goroutines: what it sees is
// not changed until it is released, and its release flags are the only things that two goroutines write or read at the same time.
//
// Not here: the names, types and codecs of states (package stream), files and handles of a checkpoint (packages checkpoint and
// storage). The package imports job alone: generic tables must be instantiated where the user's types are known, so stream imports
// state and not the other way round.
//
// Start at: table.go, then page.go, then snapshot.go and recycle.go; sweep.go goes through a table a bit at a time.
package state
