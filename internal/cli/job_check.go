package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/plan"
	"github.com/weirstream/weir/stream"
)

// restoreCheck is what weir job check is asked.
type restoreCheck struct {
	from     string
	set      []string
	options  job.Options
	allow    bool
	fallback bool
}

func (w *weir) jobCheckCommand() *cobra.Command {
	var c restoreCheck
	cmd := &cobra.Command{
		Use: "check JOB", Short: "say whether a job of this binary can start from a stored checkpoint or savepoint, without a cluster",
		Args: takes("JOB"), ValidArgs: w.names(),
		Long: "Compares a job of this binary with the checkpoint or savepoint at --from, operator by operator: matched (in both), new (starts empty),\n" +
			"dropped (its state has no operator in the job), incompatible (it cannot read its state). Without --set the job is built with the parameters\n" +
			"that the checkpoint was taken with.\n\nExits with 0 when the job can start from it, 1 when not, 2 when used wrongly.\n\nJobs: " + strings.Join(w.names(), ", "),
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", "", "the checkpoint or savepoint in the directory `PATH`, or the newest one of the job whose directory it is (required)")
	f.StringArrayVar(&c.set, "set", nil, "set a parameter of the job to a value: `NAME=VALUE` (default: the parameters in the checkpoint)")
	f.IntVar(&c.options.Parallelism, "parallelism", 0, "subtasks of each operator that does not choose itself (default: the job's choice, or 1)")
	f.IntVar(&c.options.MaxParallelism, "max-parallelism", job.DefaultMaxParallelism, "number of key groups")
	f.BoolVar(&c.allow, "allow-non-restored-state", false, "take dropped state for no mistake")
	f.BoolVar(&c.fallback, "fallback", false, "when the checkpoint cannot be read, take the next older one of its job")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.from == "" {
			return usagef("--from PATH is missing")
		}
		i := slices.IndexFunc(w.jobs, func(d stream.Definition) bool { return d.Name == args[0] })
		if i < 0 {
			return w.unknownJob(args[0])
		}
		return w.checkRestore(cmd.Context(), w.jobs[i], c)
	}
	return cmd
}

// unknownJob is the answer to the name of a job that this binary does not have.
func (w *weir) unknownJob(name string) error {
	return &exitError{exitUsage, fmt.Errorf("%s has no job %q (it has: %s)", w.process.Name, name, strings.Join(w.names(), ", ")), false}
}

func (w *weir) checkRestore(ctx context.Context, def stream.Definition, c restoreCheck) error {
	params, err := parseParams(c.set)
	if err != nil {
		return err
	}
	s, skipped, err := inspect.Choose(ctx, c.from, c.fallback)
	if err != nil {
		return err
	}
	for _, err := range skipped {
		line(w.process.Stderr, "%s: WARNING: %s", w.process.Name, errorLine(err))
	}
	if len(params) == 0 {
		params = s.Metadata.Params
	}
	program, err := plan.New(def, params, s.Metadata.Adopt(c.options))
	if err != nil {
		return err
	}
	list, err := checkpoint.Compare(s.Metadata, program.Graph, stateReader{program})
	if err != nil {
		return err
	}
	verdict := restoreVerdict(list, c.allow)
	if w.json() {
		if err := writeJSON(w.process.Stdout, view.OfRestoreCheck(s, def.Name, list, verdict == nil)); err != nil {
			return err
		}
		return verdict
	}
	t := newTable("OPERATOR", "OUTCOME", "DETAIL")
	for _, o := range list {
		t.add(nameOf(o), string(o.Outcome), o.Detail)
	}
	t.write(w.process.Stdout)
	if verdict == nil {
		line(w.process.Stdout, "job %s can start from %s %d in %s", def.Name, s.Metadata.Kind, s.Metadata.ID, s.Location)
	}
	return verdict
}

// stateReader lets the operators of a program say what they can read.
type stateReader struct{ program *plan.Program }

func (r stateReader) ReadsKeyed(operator string, written []checkpoint.StateSchema) error {
	schemas := make([]stream.StateSchema, len(written))
	for i, st := range written {
		schemas[i] = stream.StateSchema(st)
	}
	return r.program.CheckStates(operator, schemas)
}

func (r stateReader) ReadsList(operator string, written checkpoint.StateSchema, mode job.ListMode) error {
	return r.program.CheckList(operator, stream.StateSchema(written), mode)
}

// nameOf names the operator or the master hook of a comparison.
func nameOf(c checkpoint.Comparison) string {
	if c.Hook != "" {
		return "master hook " + c.Hook
	}
	return c.Operator
}

// restoreVerdict is the reason why the job cannot start, with what can be done about it.
func restoreVerdict(list []checkpoint.Comparison, allowDropped bool) error {
	var incompatible, dropped, hooks []string
	for _, o := range list {
		switch {
		case o.Outcome == checkpoint.Incompatible:
			incompatible = append(incompatible, o.Operator)
		case o.Outcome == checkpoint.Dropped && !allowDropped && o.Hook != "":
			hooks = append(hooks, o.Hook)
		case o.Outcome == checkpoint.Dropped && !allowDropped:
			dropped = append(dropped, o.Operator)
		}
	}
	switch {
	case len(incompatible) > 0:
		return errors.New("cannot take over the state of operator " + strings.Join(incompatible, ", ") +
			" (change it back, or give it a new id and drop the old state with --allow-non-restored-state)")
	case len(dropped) > 0:
		return errors.New("would lose the state of operator " + strings.Join(dropped, ", ") +
			" (give the operator its id back, or drop its state with --allow-non-restored-state)")
	case len(hooks) > 0:
		return errors.New("would lose the state of master hook " + strings.Join(hooks, ", ") +
			" (give the hook its id back, or drop its state with --allow-non-restored-state)")
	}
	return nil
}
