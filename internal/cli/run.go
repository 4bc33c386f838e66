package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) runCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use: "run JOB", Short: "submit a job to the cluster and follow it to its end", Args: takes("JOB"), ValidArgsFunction: w.completeJobName,
		Long: `Submits a job that a task executor has, and follows it to its end. The first Ctrl-C cancels the job, a second one leaves it alone.

Progress goes to stderr, the result to stdout. Exits with 0 when the job is FINISHED, 1 when it is FAILED or lost, 2 when the submission
is wrong, 3 when it is CANCELED, 130 when the job was left alone.`,
	}
	s.add(cmd)
	detach := cmd.Flags().Bool("detach", false, "print the id of the job and do not wait for its end")
	wait := cmd.Flags().Duration("wait", 30*time.Second, "how long to wait for a task executor when there is none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := s.read(cmd, args[0])
		if err != nil {
			return err
		}
		return w.connect(func(jobs gateway.Jobs) error {
			id, err := w.submit(cmd.Context(), jobs, request, *wait)
			if err != nil {
				return err
			}
			if *detach {
				return w.writeSubmitted(id)
			}
			return w.follow(cmd.Context(), jobs, id, fmt.Sprintf("goes on as it is (weir job %[1]s shows it, weir cancel %[1]s ends it)", id))
		})
	}
	return cmd
}

func (w *weir) writeSubmitted(id job.ID) error {
	if w.json() {
		return writeJSON(w.process.Stdout, struct {
			Job job.ID `json:"job_id"`
		}{id})
	}
	line(w.process.Stdout, "%s", id)
	return nil
}

// submit submits a job, for a while again and again as long as the cluster has no task executor.
func (w *weir) submit(ctx context.Context, jobs gateway.Jobs, r gateway.Submission, wait time.Duration) (job.ID, error) {
	var deadline time.Time
	for {
		id, err := jobs.Submit(ctx, r)
		if gateway.ReasonOf(err) != gateway.ReasonNoExecutors || wait <= 0 {
			return id, err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(wait)
			line(w.process.Stderr, "%s: waiting up to %s for a task executor to register at %s", w.process.Name, format.Duration(wait), w.jobMaster)
		} else if !time.Now().Before(deadline) {
			return "", err
		}
		select {
		case <-time.After(min(pollPause, time.Until(deadline))):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// outcome prints how a job has ended and makes the exit code of it.
func (w *weir) outcome(s gateway.JobStatus) error {
	if w.json() {
		if err := writeJSON(w.process.Stdout, view.OfJob(s)); err != nil {
			return err
		}
	} else {
		line(w.process.Stdout, "job %s (%s) is %s after %s: %s, %s", s.ID, s.Name, s.State, format.Duration(ranFor(s, time.Now())),
			format.Counted(s.Completed, "checkpoint"), format.Counted(s.Restarts, "restart"))
	}
	if s.State == job.Finished {
		return nil
	}
	if s.State == job.Canceled {
		return &exitError{exitCanceled, fmt.Errorf("job %s was canceled", s.ID), false}
	}
	cause := s.Detail
	if cause == "" {
		cause = "weir job " + string(s.ID) + " shows it"
	}
	return &exitError{exitFailed, fmt.Errorf("job %s (%s) is %s: %s", s.ID, s.Name, s.State, cause), false}
}

var errInterruptedTwice = errors.New("interrupted twice")
