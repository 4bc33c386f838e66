package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/weirstream/weir/internal/cli"
	"github.com/weirstream/weir/internal/harness"
)

func main() {
	if code, ok := part(os.Args[1:]); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// part runs one of the processes that the benchmark starts, if args ask for one: the program is its own job master and executor.
func part(args []string) (exitCode int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	p := cli.OS("bench " + args[0])
	p.Args = args[1:]
	switch args[0] {
	case "jobmaster":
		return cli.JobMaster(p), true
	case "taskexecutor":
		return cli.TaskExecutor(p, jobs()), true
	}
	return 0, false
}

// run is the benchmark.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	records := flags.Int("records", 20_000_000, "records per throughput run")
	rounds := flags.Int("rounds", 3, "rounds of throughput runs")
	kills := flags.Int("kills", 10, "executors killed to measure recovery")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b := &bench{
		bin:     harness.Binaries{JobMaster: []string{self, "jobmaster"}, TaskExecutor: []string{self, "taskexecutor"}},
		out:     out,
		records: *records, rounds: *rounds, kills: *kills,
	}
	fmt.Fprintf(out, "%s, %d processors, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	return errors.Join(b.checkpoints(ctx), b.recovery(ctx), b.throughput(ctx))
}
