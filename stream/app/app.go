// Package app makes a program of your jobs: one binary that submits them to a cluster, runs them in its own process, and serves a cluster as a
// task executor that has them, or as a job master that can run their master hooks.
//
// Owns: the public door to the command line.
//
// Promises: the commands and exit codes are those of weir, with "taskexecutor" and "jobmaster" beside them.
//
// Goroutines: none of its own.
//
// Start at: Main.
package app

import (
	"fmt"
	"os"

	"github.com/weirstream/weir/internal/cli"
	"github.com/weirstream/weir/stream"
)

// Job is a definition without a description; stream.Define makes one with it.
func Job(name string, build func(*stream.Job) error) stream.Definition {
	return stream.Define(name, "", build)
}

// Main runs the command line of a program that has these jobs, and exits. Their names must differ.
func Main(jobs ...stream.Definition) {
	p := cli.OS("")
	if err := check(jobs); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(1)
	}
	os.Exit(cli.App(p, jobs))
}

// check finds mistakes of the program that would make a job unreachable.
func check(jobs []stream.Definition) error {
	seen := map[string]bool{}
	for _, d := range jobs {
		switch {
		case d.Name == "":
			return fmt.Errorf("a job given to app.Main has no name")
		case d.Build == nil:
			return fmt.Errorf("job %s given to app.Main has no function that builds it", d.Name)
		case seen[d.Name]:
			return fmt.Errorf("two jobs given to app.Main have the name %s", d.Name)
		}
		seen[d.Name] = true
	}
	return nil
}
