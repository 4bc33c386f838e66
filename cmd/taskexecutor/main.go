// Command taskexecutor runs a task executor that has the example jobs built in. Package stream/app makes one with jobs of your own.
package main

import (
	"os"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/cli"
)

func main() { os.Exit(cli.TaskExecutor(cli.OS("taskexecutor"), examples.Jobs())) }
