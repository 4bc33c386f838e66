// Package lint holds the rules of the house as tests: which package may import which, what the pure cores may not touch, package comments,
// sizes, bans, and documents that quote code.
//
// Owns: the rules that golangci-lint does not know, and the lists of exceptions, each with its reason.
//
// Promises: a test names the file, the line, the rule and the remedy. It reads every Go file of the checkout that is not generated,
// whatever its build tags.
//
// Goroutines: none.
//
// Not here: formatting and the common faults of Go (.golangci.yml).
//
// Start at: arrows_test.go for the map of the packages, then cores_test.go.
package lint
