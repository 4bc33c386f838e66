package coordinator

import (
	"slices"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// State is how far a checkpoint has come, for people.
type State string

// The states.
const (
	StatePending    State = "PENDING"
	StateFinalizing State = "FINALIZING"
	StateCompleted  State = "COMPLETED"
	StateAborted    State = "ABORTED"
)

// Stats describe one checkpoint. They are updated before a caller hears of its end.
type Stats struct {
	ID        checkpoint.ID
	Kind      checkpoint.Kind
	State     State
	Final     bool
	Periodic  bool
	Triggered time.Time
	Duration  time.Duration // from trigger to the end; 0 before
	Bytes     int64
	Dir       string
	Tasks     int
	Acked     int
	Subtasks  []SubtaskStats    // in graph order; nil when the checkpoint is too old for details
	Reason    checkpoint.Reason // of an aborted one
	Failure   string
	Discarded bool // its files are deleted
}

// SubtaskStats describe the part of one task.
type SubtaskStats struct {
	Task     job.TaskID
	Acked    bool
	Finished bool          // the task had finished: there was nothing to wait for
	Latency  time.Duration // from trigger to ack
	Metrics  checkpoint.Metrics
}

// Counts are the checkpoints of this leader.
type Counts struct {
	Completed  int
	Failed     int
	InProgress int
}

// maxSubtaskRows bounds the details in the history of a job with many tasks; the newest checkpoints keep theirs.
const maxSubtaskRows = 200_000

// history holds the newest checkpoints, oldest first.
type history struct {
	limit  int
	list   []*Stats
	rows   int
	counts Counts
}

func (h *history) begin(p *pending, tasks []job.TaskID, now time.Time) *Stats {
	s := &Stats{
		ID: p.id, Kind: p.request.kind, State: StatePending, Final: p.final(), Periodic: p.request.origin == periodic,
		Triggered: now, Tasks: len(tasks), Subtasks: make([]SubtaskStats, len(tasks)),
	}
	for i, t := range tasks {
		s.Subtasks[i].Task = t
	}
	h.list = append(h.list, s)
	h.rows += len(tasks)
	h.counts.InProgress++
	h.trim()
	return s
}

func (s *Stats) ack(slot int, now time.Time, m checkpoint.Metrics) {
	s.Acked++
	s.Bytes += m.StateBytes
	row := &s.Subtasks[slot]
	row.Acked, row.Latency, row.Metrics = true, now.Sub(s.Triggered), m
}

// finished takes a task out of those that are waited for.
func (s *Stats) finished(slot int) {
	s.Tasks--
	s.Subtasks[slot].Finished = true
}

func (s *Stats) over() bool { return s.State == StateCompleted || s.State == StateAborted }

func (h *history) end(s *Stats, state State, now time.Time) time.Duration {
	s.State = state
	s.Duration = now.Sub(s.Triggered)
	h.counts.InProgress--
	if state == StateCompleted {
		h.counts.Completed++
	} else {
		h.counts.Failed++
	}
	h.trim()
	return s.Duration
}

// trim drops the oldest that are over, and the details of the next oldest.
func (h *history) trim() {
	for len(h.list) > h.limit {
		i := slices.IndexFunc(h.list, (*Stats).over)
		if i < 0 {
			break
		}
		h.rows -= len(h.list[i].Subtasks)
		h.list = slices.Delete(h.list, i, i+1)
	}
	for i := 0; h.rows > maxSubtaskRows && i < len(h.list)-1; i++ {
		if s := h.list[i]; s.over() {
			h.rows -= len(s.Subtasks)
			s.Subtasks = nil
		}
	}
}

func (h *history) discarded(id checkpoint.ID) {
	for _, s := range h.list {
		if s.ID == id {
			s.Discarded = true
		}
	}
}

// History lists the newest checkpoints, oldest first. The caller may keep it: it does not change with later events.
func (c *Core) History() []Stats {
	out := make([]Stats, len(c.stats.list))
	for i, s := range c.stats.list {
		out[i] = *s
		if !s.over() {
			out[i].Subtasks = slices.Clone(s.Subtasks)
		}
	}
	return out
}

// Counts are the numbers of checkpoints of this leader; they are not bounded by the history.
func (c *Core) Counts() Counts { return c.stats.counts }
