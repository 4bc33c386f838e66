// Package file reads lines and CSV rows from files, and writes them exactly once into a directory.
//
// Owns: finding and splitting input files, the positions of its readers in checkpoints, the CSV scanner, and the names of output files.
//
// Promises: every line is read once whatever the splits, and a reader goes on exactly behind the record that its position names; an input that
// has changed since the job was submitted is an error, never a silent mixture. Output becomes visible under its final name only when its
// checkpoint is durable; until then names end in .inprogress or .pending. Commits may be repeated. A missing output is an error.
//
// Goroutines: none of its own.
//
// Not here: event time (the operators behind the source), formats other than lines and CSV, object stores.
//
// Start at: Lines and CSV in source.go, ExactlyOnceCSV in sink.go.
package file
