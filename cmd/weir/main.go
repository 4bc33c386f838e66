// Command weir is the command line for people: it submits jobs, follows them, and shows what a cluster does.
package main

import (
	"os"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/cli"
)

func main() { os.Exit(cli.Weir(cli.OS("weir"), examples.Jobs())) }
