// Package view is what -o json prints: one type for each JSON value of the command line, and functions that make them.
//
// Owns: the names and forms of JSON fields. docs/cli.md describes them; fields are only ever added.
//
// Goroutines: none.
//
// Not here: tables and sentences for people (package cli).
//
// Start at: view.go; stats.go has what is measured, stored.go what the commands that need no cluster show.
package view
