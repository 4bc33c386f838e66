package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) jobsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "jobs", Short: "list the jobs of the cluster", Args: takes()}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, _ []string) error {
		list, err := jobs.List(ctx)
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.Each(list, view.OfJob))
		}
		now := time.Now()
		t := newTable("JOB ID", "NAME", "STATE", "TASKS", "CHECKPOINTS", "RESTARTS", "SUBMITTED", "RAN FOR", "DETAIL")
		for _, s := range list {
			running, tasks := s.CountTasks()
			t.add(string(s.ID), s.Name, s.State.String(), fmt.Sprintf("%d/%d", running, tasks), strconv.Itoa(s.Completed), strconv.Itoa(s.Restarts),
				format.Age(now, s.Submitted), format.Duration(ranFor(s, now)), noteOf(s))
		}
		t.write(w.process.Stdout)
		return nil
	})
}

// noteOf is what there is to say of a job in a list: first of all that it is degraded.
func noteOf(s gateway.JobStatus) string {
	if s.Degraded == "" {
		return s.Detail
	}
	return "DEGRADED: " + s.Degraded
}

// ranFor is how long a job has been there.
func ranFor(s gateway.JobStatus, now time.Time) time.Duration {
	if !s.Ended.IsZero() {
		now = s.Ended
	}
	return max(0, now.Sub(s.Submitted))
}
