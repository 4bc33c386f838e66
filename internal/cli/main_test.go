package cli_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/cli"
)

// leakChecked fails when a test has left a goroutine.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"weir":         func() { os.Exit(cli.Weir(cli.OS("weir"), examples.Jobs())) },
		"jobmaster":    func() { os.Exit(cli.JobMaster(cli.OS("jobmaster"), examples.Jobs())) },
		"taskexecutor": func() { os.Exit(cli.TaskExecutor(cli.OS("taskexecutor"), examples.Jobs())) },
		"ownjobs":      func() { os.Exit(cli.App(cli.OS("ownjobs"), examples.Jobs()[1:])) },
	})
}
