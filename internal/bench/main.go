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

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the benchmark, or one of the processes that it starts: the program is its own job master and executor.
func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 && args[0] == "jobmaster" {
		return runJobMaster(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "taskexecutor" {
		return runTaskExecutor(ctx, args[1:])
	}
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

func runJobMaster(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("jobmaster", flag.ContinueOnError)
	listen := flags.String("listen", "", "")
	dir := flags.String("checkpoint-dir", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return node.RunJobMaster(ctx, node.JobMasterConfig{Listen: *listen, CheckpointDir: *dir, Log: zap.NewNop()})
}

func runTaskExecutor(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("taskexecutor", flag.ContinueOnError)
	cfg := node.TaskExecutorConfig{Jobs: jobs(), Log: zap.NewNop()}
	flags.StringVar(&cfg.ID, "id", "", "")
	flags.StringVar(&cfg.JobMaster, "jobmaster", "", "")
	flags.StringVar(&cfg.Listen, "listen", "", "")
	flags.IntVar(&cfg.Slots, "slots", 1, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return node.RunTaskExecutor(ctx, cfg)
}
