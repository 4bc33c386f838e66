// Command jobmaster runs a job master.
package main

import (
	"os"

	"github.com/weirstream/weir/internal/cli"
)

func main() { os.Exit(cli.JobMaster(cli.OS("jobmaster"))) }
