package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) checkpointExplainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain ID [N]", Short: "say where the time of a checkpoint went, the latest completed one without N",
		Args: takes("ID", "[N]"), ValidArgsFunction: w.completeJobID,
	}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, args []string) error {
		d, err := findCheckpoint(ctx, jobs, args)
		if err != nil {
			return err
		}
		c, subtasks := d.CheckpointStatus, d.Subtasks
		sentences := explain(c, subtasks, time.Now())
		if w.json() {
			return writeJSON(w.process.Stdout, view.Explanation{
				Checkpoint: view.OfCheckpoint(c), Phases: view.Each(phasesOf(c, subtasks), viewPhase), Sentences: sentences,
			})
		}
		for _, sentence := range sentences {
			line(w.process.Stdout, "%s", sentence)
		}
		return nil
	})
}

// phase is a part of the way from the trigger to the end, along the subtask that was waited for longest.
type phase struct {
	name string
	took time.Duration
	what string // in words
}

func viewPhase(p phase) view.Phase { return view.Phase{Name: p.name, TookMS: view.MS(p.took)} }

// phasesOf splits the time of a checkpoint. Until the last acknowledgement it is the way of the subtask that sent it: nobody waited for the
// others. The rest is the metadata write. What the executor measured is taken as it is; clocks that differ show in the phases beside it.
func phasesOf(c gateway.CheckpointStatus, subtasks []gateway.SubtaskCheckpoint) []phase {
	last, ok := slowest(subtasks)
	if !ok {
		return nil
	}
	m := last.Metrics
	sending := min(c.Sent, max(m.StartDelay, 0)) // which the start delay has in it
	phases := []phase{
		{"directory", sending, "its directory was made, and master hooks were called"},
		{"start delay", m.StartDelay - sending, "its first barrier was on the way"},
		{"alignment", m.Alignment, "it waited for the barriers of its other inputs"},
		{"sync", m.Sync, "it stood still to take the snapshot"},
		{"async", m.Async, "the snapshot was written beside it"},
		{"ack", max(last.Latency-m.StartDelay-m.Alignment-m.Sync-m.Async, 0), "the acknowledgement was on the way"},
	}
	if c.State == gateway.CheckpointCompleted && c.Acknowledged == c.Tasks {
		phases = append(phases, phase{"metadata", max(c.Duration-last.Latency, 0), "the job master wrote the metadata"})
	}
	return phases
}

// phaseLine is all phases in one line.
func phaseLine(phases []phase) string {
	parts := make([]string, len(phases))
	for i, p := range phases {
		parts[i] = p.name + " " + format.Duration(p.took)
	}
	return strings.Join(parts, ", ")
}

// answered reports whether it is known what a subtask has measured.
func answered(s gateway.SubtaskCheckpoint) bool { return s.Acknowledged || s.Late }

// slowest is the subtask that acknowledged last, be it too late; false: none has.
func slowest(subtasks []gateway.SubtaskCheckpoint) (gateway.SubtaskCheckpoint, bool) {
	acked := slices.DeleteFunc(slices.Clone(subtasks), func(s gateway.SubtaskCheckpoint) bool { return !answered(s) })
	if len(acked) == 0 {
		return gateway.SubtaskCheckpoint{}, false
	}
	return slices.MaxFunc(acked, func(a, b gateway.SubtaskCheckpoint) int { return cmp.Compare(a.Latency, b.Latency) }), true
}

// explain says in words where the time went, and what is or was waited for.
func explain(c gateway.CheckpointStatus, subtasks []gateway.SubtaskCheckpoint, now time.Time) []string {
	out := []string{explainState(c, now)}
	if c.Failure != "" {
		out = append(out, "It failed: "+c.Failure+".")
	}
	switch {
	case c.State == gateway.CheckpointPending && c.Sent == 0:
		out = append(out, "No task has been told of it: its directory is not made, or a master hook has not answered.")
	case c.State == gateway.CheckpointAborted && c.Sent == 0:
		out = append(out, "No task had been told of it: its directory was not made, or a master hook had not answered.")
	case c.State != gateway.CheckpointCompleted && c.Acknowledged < c.Tasks:
		out = append(out, explainMissing(c, subtasks))
	}
	last, ok := slowest(subtasks)
	switch {
	case ok:
		late := ""
		if last.Late {
			late = " and too late"
		}
		out = append(out, fmt.Sprintf("The last acknowledgement came from %s, %s after the trigger%s%s.", last.Task, format.Duration(last.Latency), late, lead(last, subtasks)))
	case c.Acknowledged > 0:
		out = append(out, "The details of its subtasks are no longer remembered.")
	}
	phases := phasesOf(c, subtasks)
	if len(phases) == 0 {
		return out
	}
	var total time.Duration
	for _, p := range phases {
		total += p.took
	}
	slices.SortStableFunc(phases, func(a, b phase) int { return cmp.Compare(b.took, a.took) })
	for _, p := range phases {
		if share := percent(p.took, total); share > 0 {
			out = append(out, fmt.Sprintf("%3d%% %s (%s): %s.", share, format.Duration(p.took), p.name, p.what))
		}
	}
	if c.Notified > c.Duration {
		out = append(out, fmt.Sprintf("Every task knew of its completion %s after it.", format.Duration(c.Notified-c.Duration)))
	}
	return append(out, adviceOn(phases[0])...)
}

func explainState(c gateway.CheckpointStatus, now time.Time) string {
	head := fmt.Sprintf("%s %d of %d tasks and %s", c.Kind, c.ID, c.Tasks, format.Bytes(c.StateBytes))
	switch c.State {
	case gateway.CheckpointCompleted:
		return fmt.Sprintf("%s completed in %s.", head, format.Duration(c.Duration))
	case gateway.CheckpointAborted:
		return fmt.Sprintf("%s was aborted after %s.", head, format.Duration(c.Duration))
	case gateway.CheckpointFinalizing:
		return fmt.Sprintf("%s has all acknowledgements and waits for its metadata to be written, since its trigger %s.", head, format.Age(now, c.Triggered))
	case gateway.CheckpointPending:
	}
	return fmt.Sprintf("%s is under way, triggered %s.", head, format.Age(now, c.Triggered))
}

// maxMissing is how many subtasks are named.
const maxMissing = 5

func explainMissing(c gateway.CheckpointStatus, subtasks []gateway.SubtaskCheckpoint) string {
	text, named, missing, verb := "", 0, c.Tasks-c.Acknowledged, "have"
	if c.State == gateway.CheckpointAborted {
		verb = "had" // when it was aborted
	}
	for _, s := range subtasks {
		if !s.Acknowledged && named < maxMissing {
			text += " " + s.Task.String()
			if s.Late {
				text += " (too late)"
			}
			named++
		}
	}
	if named > 0 && missing > named {
		text += fmt.Sprintf(" and %d more", missing-named)
	}
	if text != "" {
		text = ":" + text
	}
	return fmt.Sprintf("%d of %d tasks %s not acknowledged%s.", missing, c.Tasks, verb, text)
}

// lead says how far the last subtask was behind the one before it.
func lead(last gateway.SubtaskCheckpoint, subtasks []gateway.SubtaskCheckpoint) string {
	second, ok := slowest(slices.DeleteFunc(slices.Clone(subtasks), func(s gateway.SubtaskCheckpoint) bool { return s.Task == last.Task }))
	if !ok {
		return ""
	}
	return fmt.Sprintf(", %s behind %s", format.Duration(last.Latency-second.Latency), second.Task)
}

func percent(part, whole time.Duration) int {
	if whole <= 0 {
		return 0
	}
	return int((100*part + whole/2) / whole)
}

// adviceOn is what to look at when most of the time went into a phase.
func adviceOn(p phase) []string {
	advice := map[string]string{
		"directory":   "The storage or a master hook took the time: look at how long it takes to make a directory, and at what the hooks do.",
		"start delay": "Barriers travel with the records: look for a slow operator in front of it (back pressure).",
		"alignment":   "One input brought its barrier much later than another: look for uneven load among the tasks in front of it.",
		"async":       "Writing the state took the time: look at its size and at the storage.",
		"metadata":    "The storage took the time: look at how long it takes to make a small file durable.",
	}
	if text := advice[p.name]; text != "" {
		return []string{text}
	}
	return nil
}
