package cli

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/estimate"
	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) rescaleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rescale ID", Short: "change the parallelism of a running job", Args: takes("ID"), ValidArgsFunction: w.completeJobID,
		Long: "Changes the parallelism of a running job: it takes a checkpoint, stops all tasks, and starts them from it by a new plan, each on the executor that\n" +
			"has most of its state. What that will take is shown first. If there are not slots enough, or the checkpoint does not complete, the job goes\n" +
			"on as it is; if the new tasks cannot run, it goes back to the old plan from the same checkpoint.\n\n" +
			"--parallelism is of the operators that choose none themselves, and makes earlier choices of --vertex void.",
	}
	parallelism := cmd.Flags().Int("parallelism", 0, "parallelism of the job (default: as it is)")
	vertices := cmd.Flags().StringToInt("vertex", nil, "`VERTEX=N`: parallelism of all operators of a vertex; can be repeated")
	dry := cmd.Flags().Bool("dry-run", false, "only show what it would take")
	yes := cmd.Flags().BoolP("yes", "y", false, "do it without asking; needed on a terminal")
	wait := cmd.Flags().Duration("wait", 0, "how long to wait for slots while the job runs on (default: refuse when there are not enough)")
	return w.query(cmd, waitTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		if *parallelism == 0 && len(*vertices) == 0 {
			return usagef("choose a parallelism with --parallelism, or with --vertex VERTEX=N")
		}
		s, err := findRunning(ctx, jobs, args[0])
		if err != nil {
			return err
		}
		r := gateway.RescaleJob{Job: s.ID, Parallelism: *parallelism, Wait: *wait, DryRun: true, Vertices: map[job.VertexID]int{}}
		for _, v := range slices.Sorted(maps.Keys(*vertices)) {
			r.Vertices[job.VertexID(v)] = (*vertices)[v]
		}
		return w.rescale(ctx, jobs, r, *dry, *yes)
	})
}

// rescale shows the estimate, and has it done unless that is all that is wanted.
func (w *weir) rescale(ctx context.Context, jobs gateway.Jobs, r gateway.RescaleJob, dry, yes bool) error {
	got, err := jobs.Rescale(ctx, r)
	if err != nil {
		return err
	}
	if !w.json() {
		estimate.Write(w.process.Stdout, got.Estimate)
	}
	if !dry {
		if w.process.Terminal && !yes {
			return usagef("job %s would be rescaled so: say so with --yes", r.Job)
		}
		r.DryRun = false
		stop := w.showEvents(ctx, jobs, r.Job)
		got, err = jobs.Rescale(ctx, r)
		stop()
		if err != nil {
			return err
		}
	}
	if w.json() {
		return writeJSON(w.process.Stdout, view.OfRescale(string(r.Job), got))
	}
	if x := got.Report; x != nil {
		line(w.process.Stdout, "job %s is rescaled: its tasks stood still for %s and run again from checkpoint %d, which took %s; %s of state moved to another executor, %s stayed",
			r.Job, format.Duration(x.Pause), x.Checkpoint, format.Duration(x.CheckpointDuration), format.Bytes(x.Moved), format.Bytes(x.Stayed))
	}
	return nil
}

// showEvents writes what happens to the job from now on, until it is stopped.
func (w *weir) showEvents(ctx context.Context, jobs gateway.Jobs, id job.ID) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	first := true
	wg.Go(func() {
		_ = jobs.Watch(ctx, id, func(_ gateway.JobStatus, events []gateway.JobEvent) error { // the answer to the request says what went wrong
			for _, e := range events {
				if !first {
					line(w.process.Stderr, "%s %s", e.Time.Local().Format(time.TimeOnly), e.Text)
				}
			}
			first = false
			return nil
		})
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
