// Package estimate writes in words what a rescale will take.
//
// Owns: the text that weir rescale shows before it does anything.
//
// Goroutines: none.
//
// Not here: the estimate itself (package rescale), its JSON (package view).
//
// Start at: Write.
package estimate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/gateway"
)

// Write writes the estimate.
func Write(out io.Writer, e gateway.RescaleEstimate) {
	var changes []string
	for _, v := range e.Vertices {
		switch {
		case v.From == 0:
			changes = append(changes, fmt.Sprintf("%s (new) %d", v.Vertex, v.To))
		case v.To == 0:
			changes = append(changes, fmt.Sprintf("%s %d -> joined to another", v.Vertex, v.From))
		case v.From != v.To:
			changes = append(changes, fmt.Sprintf("%s %d -> %d", v.Vertex, v.From, v.To))
		}
	}
	line(out, "Parallelism: %s", strings.Join(changes, ", "))
	line(out, "Slots:       needs %d, has %d, free are %d", e.SlotsNeeded, e.SlotsHeld, e.SlotsFree)
	if e.Checkpoint == 0 {
		line(out, "State:       not known, the job has no checkpoint yet")
	} else {
		line(out, "State:       %s in checkpoint %d, of which at most %s would be read by another executor than wrote it",
			format.Bytes(e.StateBytes), e.Checkpoint, format.Bytes(e.MovedBytes))
	}
	if e.CheckpointDuration > 0 {
		line(out, "Checkpoint:  about %s, while the job runs on", format.Duration(e.CheckpointDuration))
	}
	if e.Pause > 0 {
		line(out, "Pause:       about %s", format.Duration(e.Pause))
	}
	if len(e.Tasks) == 0 {
		return
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line(tw, "VERTEX\tSUBTASK\tREADS\tFROM ELSEWHERE")
	for _, r := range e.Tasks {
		line(tw, "%s\t%d\t%s\t%s", r.Task.Vertex, r.Task.Subtask, format.Bytes(r.Bytes), format.Bytes(r.Moved))
	}
	_ = tw.Flush() // as in line
}

// line writes a line. An output that cannot be written to is nobody's business: the command has done its work.
func line(w io.Writer, text string, args ...any) { _, _ = fmt.Fprintf(w, text+"\n", args...) }
