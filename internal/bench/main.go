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
	"strings"
	"time"

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
		return cli.JobMaster(p, jobs()), true
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
	checkpoints := flags.Int("checkpoints", 200, "idle checkpoints taken one after another")
	sustained := flags.Duration("sustained", time.Minute, "how long checkpoints are taken every 100 ms, all of which must complete")
	keys := flags.Int("keys", 1_000_000, "keys of the durable checkpoints")
	rows := flags.Int("rows", 16_500_000, "keys of the state that is restored; each has 64 bytes")
	durables := flags.Int("durables", 60, "durable checkpoints")
	turn := flags.Duration("turn", turns, "how long a job runs with and without checkpoints, in turn")
	only := flags.String("only", "", "measure one thing only: "+parts())
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
		records: *records, rounds: *rounds, kills: *kills, checkpoints: *checkpoints, sustained: *sustained,
		keys: *keys, rows: *rows, durables: *durables, turn: *turn,
	}
	fmt.Fprintf(out, "%s, %d processors, %s/%s\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	return b.run(ctx, *only)
}

// measurements are the parts of the benchmark.
var measurements = []struct {
	name    string
	measure func(*bench, context.Context) error
}{
	{"checkpoints", (*bench).idle}, {"sustained", (*bench).every}, {"state", (*bench).durable}, {"recovery", (*bench).recovery},
	{"restore", (*bench).restore}, {"rescale", (*bench).rescale}, {"throughput", (*bench).throughput},
}

func parts() string {
	var names []string
	for _, m := range measurements {
		names = append(names, m.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// run measures what is asked for, all with an empty name.
func (b *bench) run(ctx context.Context, only string) error {
	var errs []error
	found := false
	for _, m := range measurements {
		if only == "" || only == m.name {
			found = true
			errs = append(errs, m.measure(b, ctx))
		}
	}
	if !found {
		return fmt.Errorf("-only %s is not known: %s", only, parts())
	}
	return errors.Join(errs...)
}
