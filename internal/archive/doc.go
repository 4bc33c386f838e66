// Package archive is where the checkpoints and savepoints of jobs are kept, as the job master sees it: its checkpoint directory, and every other
// directory that somebody has named.
//
// Owns: the names of directories. Inside, one below the checkpoint directory is named relative to it, so that it means the same in every process
// however it is mounted; any other by its location, an absolute path or a URL. People see locations only.
//
// Promises: metadata is published in one durable step and deleted first. What is read is whole: metadata that decodes, and every state file that it
// refers to is there, shared ones too.
//
// Goroutines: a few while shared files are deleted, which the call waits for; methods are safe for concurrent use and wait for the storage, so no loop calls them.
//
// Not here: what is in a checkpoint and which one is chosen (package checkpoint), files (package storage), tools without a cluster (package inspect).
//
// Start at: Archive.
package archive
