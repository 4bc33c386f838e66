package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
	"github.com/weirstream/weir/internal/rpc"
	"github.com/weirstream/weir/stream"
)

// weir is the command line for people: what its commands share.
type weir struct {
	process   Process
	jobs      []stream.Definition // that this binary has
	jobMaster string
	output    choice
}

// Weir runs the command line for people; the jobs are those that it can run in its own process. It returns the exit code.
func Weir(p Process, jobs []stream.Definition) int {
	w := &weir{process: p, jobs: jobs}
	return p.execute(w.root("the command line of Weir, a distributed stateful stream processor"))
}

// App runs the command line of a binary with jobs of its own: that of weir, and the task executor and the job master that serve them.
func App(p Process, jobs []stream.Definition) int {
	w := &weir{process: p, jobs: jobs}
	root := w.root("runs, serves and watches its jobs: " + strings.Join(w.names(), ", "))
	root.AddCommand(taskExecutor(p, "taskexecutor", jobs), jobMaster(p, "jobmaster", jobs))
	return p.execute(root)
}

func (w *weir) root(short string) *cobra.Command {
	root := &cobra.Command{
		Use: w.process.Name, Short: short, Version: node.Version(),
		Long: fmt.Sprintf("%s: %s.\n\nEach flag can be set in the environment too: --jobmaster as WEIR_JOBMASTER. Job ids can be shortened.\n\n%s",
			w.process.Name, short, exitCodes),
	}
	w.output = choiceOf("table", "json")
	flags := root.PersistentFlags()
	flags.StringVar(&w.jobMaster, "jobmaster", "localhost:6123", "`HOST:PORT` of the job master")
	flags.VarP(&w.output, "output", "o", "form of the output")
	root.AddCommand(
		w.runCommand(), w.localCommand(), w.listCommand(), w.jobsCommand(), w.jobCommand(), w.rescaleCommand(), w.stopCommand(), w.cancelCommand(), w.savepointCommand(),
		w.checkpointCommand(), w.stateCommand(),
		w.executorsCommand(), w.versionCommand(),
	)
	return root
}

func (w *weir) json() bool { return w.output.value == "json" }

func (w *weir) names() []string {
	names := make([]string, len(w.jobs))
	for i, d := range w.jobs {
		names[i] = d.Name
	}
	return names
}

// connect calls use with the job master. An error that comes of the connection says which address was tried and how to choose another.
func (w *weir) connect(use func(jobs gateway.Jobs) error) error {
	if err := checkAddress("jobmaster", w.jobMaster); err != nil {
		return err
	}
	conn, err := rpc.Dial(w.jobMaster)
	if err != nil {
		return fmt.Errorf("job master: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is lost: every call has been answered
	err = use(rpc.NewJobs(conn))
	var e *gateway.Error
	if errors.As(err, &e) && e.Reason == reasonUnreachable {
		e.Remedy = "start one there, or choose the address with --jobmaster or " + envName("jobmaster")
	}
	return err
}

// query is a command that makes calls for at most a time.
func (w *weir) query(cmd *cobra.Command, limit time.Duration, run func(ctx context.Context, jobs gateway.Jobs, args []string) error) *cobra.Command {
	timeout := cmd.Flags().Duration("timeout", limit, "how long to wait for the job master")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), *timeout)
		defer cancel()
		return w.connect(func(jobs gateway.Jobs) error { return run(ctx, jobs, args) })
	}
	return cmd
}

// The default limits of queries.
const (
	askTimeout  = rpc.CallTimeout
	waitTimeout = rpc.WaitTimeout // for what takes time to come about
)

// findRunning is find for a job that must not have ended.
func findRunning(ctx context.Context, jobs gateway.Jobs, prefix string) (gateway.JobStatus, error) {
	s, err := find(ctx, jobs, prefix)
	if err == nil && s.State.Terminal() {
		err = fmt.Errorf("job %s is %s already", s.ID, s.State)
	}
	return s, err
}

// find returns the job with an id or a part of it that is the start of no other's.
func find(ctx context.Context, jobs gateway.Jobs, prefix string) (gateway.JobStatus, error) {
	all, err := jobs.List(ctx)
	if err != nil {
		return gateway.JobStatus{}, err
	}
	var found []gateway.JobStatus
	for _, s := range all {
		if s.ID == job.ID(prefix) {
			return s, nil
		}
		if prefix != "" && strings.HasPrefix(string(s.ID), prefix) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return gateway.JobStatus{}, gateway.JobNotFound(job.ID(prefix))
	case 1:
		return found[0], nil
	}
	return gateway.JobStatus{}, &gateway.Error{
		Code: gateway.InvalidArgument, Message: fmt.Sprintf("%d jobs have ids that start with %q", len(found), prefix), Remedy: "give more of the id",
	}
}
