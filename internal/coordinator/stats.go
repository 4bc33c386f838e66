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
	Times
	ID        checkpoint.ID
	Kind      checkpoint.Kind
	State     State
	Final     bool
	Stop      job.StopMode // the job ends with it
	Bytes     int64
	Base      checkpoint.ID // whose shared files it may refer to; 0: none
	Dir       string
	Tasks     int
	Acked     int
	Subtasks  []checkpoint.SubtaskStats // in graph order, those of a vertex together; nil when the checkpoint is too old for details
	Reason    checkpoint.Reason         // of an aborted one
	Failure   string
	Discarded bool // its files are deleted
}

// Times are the steps of a checkpoint.
type Times struct {
	Triggered time.Time
	Sent      time.Duration // from trigger until the barriers were sent, when its directory was ready; 0 before
	Duration  time.Duration // from trigger to the end; 0 before
	Notified  time.Duration // from trigger until the last task had confirmed the completion; 0 before, and when nobody is told
}

// PerVertex describes the parts of the vertices in graph order; nil when the checkpoint is too old for details. Late acks count as none.
func (s *Stats) PerVertex() []checkpoint.VertexStats { return checkpoint.PerVertex(s.Subtasks) }

// longestAlignment is that of the task that waited longest for the barriers of its other inputs.
func (s *Stats) longestAlignment() (longest time.Duration) {
	for _, t := range s.Subtasks {
		longest = max(longest, t.Metrics.Alignment)
	}
	return longest
}

// Counts are the checkpoints and savepoints of this leader.
type Counts struct {
	Completed  int
	Failed     int
	InProgress int
	Restored   int // how often tasks were started from one
}

// Restore is what the tasks were started from.
type Restore struct {
	ID   checkpoint.ID
	Kind checkpoint.Kind
	Dir  string
	At   time.Time
}

// maxSubtaskRows bounds the details in the history of a job with many tasks; the newest checkpoints keep theirs.
const maxSubtaskRows = 200_000

// record is a checkpoint in the history.
type record struct {
	Stats
	shared bool // a reader has Subtasks: they are copied before they change
}

// history holds the newest checkpoints, oldest first, and what is measured of all.
type history struct {
	limit  int
	list   []*record
	rows   int
	counts Counts

	latest struct { // these are not dropped, so that each can be looked at however many came after it
		completed, savepoint, failed *record
		restore                      Restore
	}
	measured struct {
		duration, alignment checkpoint.Window[time.Duration]
		bytes               checkpoint.Window[int64]
	}
}

func newHistory(limit int) history {
	h := history{limit: limit}
	h.measured.duration = checkpoint.NewWindow[time.Duration](checkpoint.MaxSummarized)
	h.measured.alignment = checkpoint.NewWindow[time.Duration](checkpoint.MaxSummarized)
	h.measured.bytes = checkpoint.NewWindow[int64](checkpoint.MaxSummarized)
	return h
}

func (h *history) begin(p *pending, tasks []job.TaskID, now time.Time) *record {
	s := &record{Stats: Stats{
		ID: p.id, Kind: p.request.kind, State: StatePending, Final: p.final(), Stop: p.request.stop,
		Base: p.request.base, Times: Times{Triggered: now}, Tasks: len(tasks), Subtasks: make([]checkpoint.SubtaskStats, len(tasks)),
	}}
	for i, t := range tasks {
		s.Subtasks[i].Task = t
	}
	h.list = append(h.list, s)
	h.rows += len(tasks)
	h.counts.InProgress++
	h.trim()
	return s
}

// row is the part of a task, to be changed.
func (s *record) row(slot int) *checkpoint.SubtaskStats {
	if s.shared {
		s.Subtasks, s.shared = slices.Clone(s.Subtasks), false
	}
	return &s.Subtasks[slot]
}

func (s *record) ack(slot int, now time.Time, m checkpoint.Metrics) {
	s.Acked++
	s.Bytes += m.StateBytes
	row := s.row(slot)
	row.Acked, row.Latency, row.Metrics = true, now.Sub(s.Triggered), s.fromTrigger(m)
}

// fromTrigger makes the start delay run from the trigger: the task has measured it from the time in the barrier, which has whole milliseconds.
func (t *Times) fromTrigger(m checkpoint.Metrics) checkpoint.Metrics {
	m.StartDelay = max(m.StartDelay-t.Triggered.Sub(inBarrier(t.Triggered)), 0)
	return m
}

// inBarrier is the time of a trigger as barriers and metadata carry it.
func inBarrier(triggered time.Time) time.Time { return time.UnixMilli(triggered.UnixMilli()).UTC() }

// finished takes a task out of those that are waited for.
func (s *record) finished(slot int) {
	s.Tasks--
	s.row(slot).Finished = true
}

func (s *record) over() bool { return s.State == StateCompleted || s.State == StateAborted }

// late notes what a task measured whose ack came after its checkpoint was aborted: it may say why that took too long.
func (h *history) late(id checkpoint.ID, slot int, now time.Time, m checkpoint.Metrics) {
	i := slices.IndexFunc(h.list, func(s *record) bool { return s.ID == id })
	if i < 0 || h.list[i].State != StateAborted || slot >= len(h.list[i].Subtasks) { // too old for details, or of another plan
		return
	}
	if s := h.list[i]; !s.Subtasks[slot].Acked && !s.Subtasks[slot].Late {
		row := s.row(slot)
		row.Late, row.Latency, row.Metrics = true, now.Sub(s.Triggered), s.fromTrigger(m)
	}
}

func (h *history) end(s *record, state State, now time.Time) time.Duration {
	s.State = state
	s.Duration = now.Sub(s.Triggered)
	h.counts.InProgress--
	switch {
	case state != StateCompleted:
		h.counts.Failed++
		h.latest.failed = s
	case s.Kind == checkpoint.Savepoint:
		h.counts.Completed++
		h.latest.savepoint = s
	default:
		h.counts.Completed++
		h.latest.completed = s
		h.measured.duration.Add(s.Duration)
		h.measured.alignment.Add(s.longestAlignment())
		h.measured.bytes.Add(s.Bytes)
	}
	h.trim()
	return s.Duration
}

// restored notes that tasks are started from a checkpoint.
func (h *history) restored(ev Restored, now time.Time) {
	h.counts.Restored++
	h.latest.restore = Restore{ID: ev.ID, Kind: ev.Kind, Dir: ev.Dir, At: now}
}

// trim drops what is older than the newest limit, over, and not the latest of its kind; then the details of the next oldest.
func (h *history) trim() {
	for i := 0; i < len(h.list)-h.limit; {
		s, l := h.list[i], &h.latest
		if !s.over() || s == l.completed || s == l.savepoint || s == l.failed {
			i++
			continue
		}
		h.rows -= len(s.Subtasks)
		h.list = slices.Delete(h.list, i, i+1)
	}
	for i := 0; h.rows > maxSubtaskRows && i < len(h.list)-1; i++ {
		if s := h.list[i]; s.over() {
			h.rows -= len(s.Subtasks)
			s.Subtasks = nil
		}
	}
}

// notified notes that every task knows of the completion.
func (h *history) notified(id checkpoint.ID, now time.Time) {
	for _, s := range h.list {
		if s.ID == id {
			s.Notified = now.Sub(s.Triggered)
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

// History lists the newest checkpoints, oldest first; older ones are in it while they are under way, and when they are the latest that has
// completed, the latest savepoint or the latest that was aborted. The caller may keep it: it does not change with later events.
func (c *Core) History() []Stats {
	out := make([]Stats, len(c.stats.list))
	for i, s := range c.stats.list {
		s.shared = true
		out[i] = s.Stats
	}
	return out
}

// Counts are the numbers of checkpoints of this leader; they are not bounded by the history.
func (c *Core) Counts() Counts { return c.stats.counts }

// Summary describes the latest completed checkpoints of this leader, those that the history has dropped too.
func (c *Core) Summary() checkpoint.CompletedSummary {
	m := &c.stats.measured
	return checkpoint.CompletedSummary{Duration: m.duration.Summary(), Alignment: m.alignment.Summary(), StateBytes: m.bytes.Summary()}
}

// LastRestore is what the tasks were started from the last time; false: never from a checkpoint.
func (c *Core) LastRestore() (Restore, bool) {
	r := c.stats.latest.restore
	return r, r.ID != 0
}
