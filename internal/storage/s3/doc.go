// Package s3 keeps files in a bucket of an object store that speaks the protocol of Amazon S3.
//
// Owns: the requests to the store, how often they are tried, and what is kept in memory of files on their way.
//
// Promises: those of storage.Storage. A file is one object, which the store shows whole or not at all; one that is being written is a multipart
// upload, or only in memory. Every request has a time limit and a bounded number of tries, and is tried again only if it may be: it asks, or it says
// the same a second time, or, for a file that must not be there yet, what is found is compared with what was to be written. Credentials are in no
// error and no log. Directories are prefixes: one is there as long as something is in it, and a name can be a file and a directory at once.
//
// Goroutines: one per part of a file that is being uploaded or read; the call that needs them waits for them.
//
// Not here: which location means S3 (package schemes), a server for tests (package s3test).
//
// Start at: storage.go for the files, call.go for what is tried again, config.go for the settings.
package s3
