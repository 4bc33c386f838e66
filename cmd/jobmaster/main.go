// Command jobmaster runs a job master. It has the example jobs built in, for their master hooks. Package stream/app makes one with jobs of your own.
package main

import (
	"os"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/cli"
)

func main() { os.Exit(cli.JobMaster(cli.OS("jobmaster"), examples.Jobs())) }
