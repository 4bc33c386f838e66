package jobmaster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// onRequestOnly takes no checkpoints but those that are asked for.
func onRequestOnly(s *gateway.Submission) {
	s.Options.Checkpoint.Interval = -1
	s.Options.Checkpoint.TolerableFailures = 100
}

// Whatever a caller asks next agrees with the answer that it has just got: the statistics come first.
func TestStats_AreUpdatedBeforeTheCallerHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(cfg *Config) { cfg.SavepointDir = "/sp" })
		defer c.close()
		fails := false
		c.start("a", 1, script{trigger: func(context.Context) error {
			if fails {
				return context.DeadlineExceeded
			}
			return nil
		}})
		id := c.submit(1, onRequestOnly)
		c.expect(id, job.Running)
		want := gateway.CheckpointCounts{}
		for i := range 30 {
			fails = i%3 == 2
			ask := c.m.TriggerCheckpoint
			if i%3 == 1 {
				ask = func(ctx context.Context, id job.ID, epoch job.LeaderEpoch) (gateway.CheckpointResult, error) {
					return c.m.TriggerSavepoint(ctx, gateway.TriggerSavepoint{Job: id, Epoch: epoch})
				}
			}
			r, err := ask(t.Context(), id, 0)
			s, _ := c.m.Get(t.Context(), id)
			h, _ := c.m.Checkpoints(t.Context(), id)
			if fails != (err != nil) {
				t.Fatalf("request %d: %v", i, err)
			}
			if newest := h.Checkpoints[0]; fails {
				want.Failed++
				if newest.State != gateway.CheckpointAborted {
					t.Fatalf("request %d has failed, its checkpoint is %s", i, newest.State)
				}
			} else {
				want.Completed++
				if newest.State != gateway.CheckpointCompleted || newest.ID != r.ID || s.Last.ID != r.ID || newest.Duration != r.Duration {
					t.Fatalf("request %d was told %+v, and then %+v; latest completed %+v", i, r, newest, s.Last)
				}
			}
			if s.CheckpointCounts != want || h.CheckpointCounts != want || h.Summary.Duration.Count != i/3+1 {
				t.Fatalf("request %d: counts are %+v and %+v, %d measured, want %+v", i, s.CheckpointCounts, h.CheckpointCounts, h.Summary.Duration.Count, want)
			}
		}
	})
}

func TestStats_RestoresAreCountedAndInTheTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		a := c.start("a", 1, script{})
		id := c.submit(1, onRequestOnly)
		if s := c.expect(id, job.Running); s.Restored != 0 || s.LastRestore != nil {
			t.Errorf("a job that started empty: %+v, %+v", s.CheckpointCounts, s.LastRestore)
		}
		if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		a.disconnect()
		c.start("b", 1, script{})
		time.Sleep(time.Minute)
		s := c.expect(id, job.Running)
		want := gateway.RestoreStatus{ID: 1, Kind: 1, Path: "file:///chk/job-1/chk-1"}
		if s.Restored != 1 || s.LastRestore == nil || s.LastRestore.Time.IsZero() {
			t.Fatalf("after a restart: %+v, %+v", s.CheckpointCounts, s.LastRestore)
		}
		got := *s.LastRestore
		got.Time = time.Time{}
		if got != want {
			t.Errorf("restored from %+v, want %+v", got, want)
		}
		if !slices.ContainsFunc(timelineOf(t, c, id), func(line string) bool { return strings.HasPrefix(line, "restored from checkpoint 1 in ") }) {
			t.Errorf("the timeline does not tell of it: %q", timelineOf(t, c, id))
		}
	})
}

func timelineOf(t *testing.T, c *cluster, id job.ID) (lines []string) {
	t.Helper()
	_ = c.m.Watch(t.Context(), id, func(_ gateway.JobStatus, events []gateway.JobEvent) error {
		for _, e := range events {
			lines = append(lines, e.Text)
		}
		return context.Canceled
	})
	return lines
}

// The history is as long as the job master was told, and the latest completed checkpoint can be looked at however many have failed since.
func TestStats_HistoryIsAsLongAsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(cfg *Config) { cfg.Rules.CheckpointHistory = 2 })
		defer c.close()
		fails := false
		c.start("a", 1, script{trigger: func(context.Context) error {
			if fails {
				return context.DeadlineExceeded
			}
			return nil
		}})
		id := c.submit(1, onRequestOnly)
		c.expect(id, job.Running)
		for i := range 8 {
			fails = i >= 4
			_, _ = c.m.TriggerCheckpoint(t.Context(), id, 0)
		}
		h, err := c.m.Checkpoints(t.Context(), id)
		var ids []int64
		for _, s := range h.Checkpoints {
			ids = append(ids, int64(s.ID))
		}
		if !slices.Equal(ids, []int64{8, 7, 4}) || err != nil {
			t.Errorf("history is %v, %v, want the newest two and the latest completed one", ids, err)
		}
		d, err := c.m.Checkpoint(t.Context(), id, c.status(id).Last.ID)
		if err != nil || d.ID != 4 || len(d.Vertices) != 2 || d.Vertices[1].Vertex != "agg" || d.Vertices[1].Metrics.StateBytes.Sum != 5 {
			t.Errorf("the latest completed checkpoint: %+v, %v", d, err)
		}
	})
}

// A checkpoint that has ended is one line of the log and one of the timeline, with one text: that of the event.
func TestStats_OneEndOneLineOneText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.InfoLevel)
		fails := false
		c := newCluster(t, func(cfg *Config) { cfg.Log, cfg.SavepointDir = zap.New(core), "/sp" })
		defer c.close()
		c.start("a", 1, script{trigger: func(context.Context) error {
			if fails {
				return context.DeadlineExceeded
			}
			return nil
		}})
		id := c.submit(1, onRequestOnly)
		c.expect(id, job.Running)
		for i := range 6 {
			fails = i%2 == 1
			_, _ = c.m.TriggerCheckpoint(t.Context(), id, 0)
		}
		_, _ = c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id}) // fails
		fails = false
		if _, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id}); err != nil {
			t.Fatal(err)
		}
		timeline := timelineOf(t, c, id)
		h, _ := c.m.Checkpoints(t.Context(), id)
		if len(h.Checkpoints) != 8 {
			t.Fatalf("%d checkpoints, want 8", len(h.Checkpoints))
		}
		for _, s := range h.Checkpoints {
			about := logged.FilterField(zap.Int64("checkpoint", int64(s.ID))).All()
			if len(about) != 1 {
				t.Errorf("checkpoint %d has the lines %v in the log, want one", s.ID, about)
				continue
			}
			text := about[0].Message
			outcome := map[gateway.CheckpointState]string{gateway.CheckpointCompleted: " completed in ", gateway.CheckpointAborted: " aborted: "}[s.State]
			if want := fmt.Sprintf("%s %d%s", s.Kind, s.ID, outcome); !strings.HasPrefix(text, want) {
				t.Errorf("checkpoint %d is %s and is logged as %q, want %q", s.ID, s.State, text, want)
			}
			if n := len(slices.DeleteFunc(slices.Clone(timeline), func(line string) bool { return line != text })); n != 1 {
				t.Errorf("%q is %d times in the timeline, want once", text, n)
			}
		}
	})
}
