package rescale

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/job"
)

// Each event and effect is one stable line: of the log and of the transcripts.

func (e Requested) String() string {
	line := fmt.Sprintf("requested parallelism=%d", e.Request.Parallelism)
	for _, v := range slices.Sorted(maps.Keys(e.Request.Vertices)) {
		line += fmt.Sprintf(" %s=%d", v, e.Request.Vertices[v])
	}
	if e.Request.DryRun {
		line += " dry-run"
	}
	return because(line, e.NotRunning)
}
func (e Planned) String() string { return because("planned "+graph(e.Graph), text(e.Err)) }
func (e Surveyed) String() string {
	return because(fmt.Sprintf("surveyed needs=%d held=%d free=%d", e.Estimate.SlotsNeeded, e.Estimate.SlotsHeld, e.Estimate.SlotsFree), text(e.Problem))
}
func (e Checkpointed) String() string {
	return because(fmt.Sprintf("checkpointed %d", e.ID), e.Problem)
}
func (Recorded) String() string { return "recorded" }
func (Short) String() string    { return "short of slots" }
func (Deployed) String() string { return "deployed" }
func (e Running) String() string {
	return fmt.Sprintf("running from %d moved=%d stayed=%d", e.Checkpoint, e.Moved, e.Stayed)
}
func (e Failed) String() string { return because("failed", e.Failure.String()) }
func (e Ended) String() string  { return "ended " + e.State.String() }
func (Tick) String() string     { return "tick" }

func (e CallPlan) String() string {
	line := fmt.Sprintf("call plan parallelism=%d", e.Parallelism)
	for _, op := range slices.Sorted(maps.Keys(e.Operators)) {
		line += fmt.Sprintf(" %s=%d", op, e.Operators[op])
	}
	return line
}
func (e Survey) String() string       { return "survey " + graph(e.Graph) }
func (TakeCheckpoint) String() string { return "take checkpoint" }
func (e Record) String() string       { return "record " + graph(e.Plan.Graph) }
func (e Replan) String() string {
	if e.Trial {
		return "replan " + graph(e.Graph) + " on trial"
	}
	return "replan " + graph(e.Graph)
}
func (e Answer) String() string {
	switch {
	case e.Err != nil:
		return "answer: " + oneLine(e.Err.Error())
	case e.Report == nil:
		return "answer with the estimate"
	}
	return fmt.Sprintf("answer: checkpoint %d, pause %s, moved %d, stayed %d", e.Report.Checkpoint, e.Report.Pause, e.Report.Moved, e.Report.Stayed)
}
func (e Note) String() string { return oneLine(string(e)) }

func graph(g *job.Graph) string {
	if g == nil {
		return "nothing"
	}
	var parts []string
	for _, v := range g.Vertices {
		parts = append(parts, fmt.Sprintf("%s=%d", v.ID, v.Parallelism))
	}
	return strings.Join(parts, " ")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func because(line, why string) string {
	if why == "" {
		return line
	}
	return line + ": " + oneLine(why)
}

func oneLine(s string) string { return strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(s) }
