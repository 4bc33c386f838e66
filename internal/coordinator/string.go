package coordinator

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// The strings below are log lines, transcript lines and the timeline of the dashboard at once: one line each, stable, no state bytes.

// String is one line.
func (e TasksRunning) String() string {
	sources := 0
	for _, t := range e.Tasks {
		if t.Source {
			sources++
		}
	}
	return fmt.Sprintf("TasksRunning tasks=%d sources=%d random=%.2f", len(e.Tasks), sources, e.Random)
}

// String is one line.
func (e TasksStopped) String() string { return line("TasksStopped", "reason=", string(e.Reason)) }

// String is one line.
func (Tick) String() string { return "Tick" }

// String is one line.
func (e TriggerRequested) String() string {
	return fmt.Sprintf("TriggerRequested request=%d %s", e.Request, line(e.Kind.String(), "dir=", e.Directory))
}

// String is one line.
func (EndOfDataReached) String() string { return "EndOfDataReached" }

// String is one line.
func (e TaskFinished) String() string { return "TaskFinished " + e.Attempt.String() }

// String is one line.
func (e BacklogChanged) String() string {
	return fmt.Sprintf("BacklogChanged %s behind=%t", e.Attempt, e.Behind)
}

// String is one line.
func (e LocationReady) String() string {
	return line(fmt.Sprintf("LocationReady %d", e.ID), "dir=", e.Dir, "error=", quote(e.Err))
}

// String is one line; states are given by their sizes.
func (e HooksCalled) String() string {
	s := fmt.Sprintf("HooksCalled %d", e.ID)
	for _, st := range e.States {
		s += fmt.Sprintf(" %s=%s", st.Hook, size(int64(len(st.State))))
	}
	return line(s, "error=", quote(e.Err))
}

// String is one line.
func (e TriggerFailed) String() string {
	return line(fmt.Sprintf("TriggerFailed %d %s", e.ID, e.Attempt), "error=", quote(e.Err))
}

// String is one line; the state is given by its size.
func (e Ack) String() string {
	return fmt.Sprintf("Ack %d %s epoch=%d request=%d state=%s", e.ID, e.Attempt, e.Epoch, e.Request, size(e.Metrics.StateBytes))
}

// String is one line.
func (e Decline) String() string {
	return line(fmt.Sprintf("Decline %d %s epoch=%d", e.ID, e.Attempt, e.Epoch), "reason=", string(e.Reason), "message=", quote(e.Message))
}

// String is one line.
func (e MetadataWritten) String() string {
	outcome := map[WriteOutcome]string{NotWritten: " not written", Uncertain: " uncertain"}[e.Outcome]
	return line(fmt.Sprintf("MetadataWritten %d%s", e.ID, outcome), "error=", quote(e.Err))
}

// String is one line.
func (e Discarded) String() string {
	return line(fmt.Sprintf("Discarded %d", e.ID), "error=", quote(e.Err))
}

// String is one line.
func (e SharedRemoved) String() string { return line("SharedRemoved", "error=", quote(e.Err)) }

// String is one line.
func (e NotifyConfirmed) String() string {
	return fmt.Sprintf("NotifyConfirmed %d %s", e.ID, e.Attempt)
}

// String is one line.
func (e Restored) String() string {
	return fmt.Sprintf("restored from %s %d in %s", e.Kind, e.ID, e.Dir)
}

// String is one line.
func (e AbortConfirmed) String() string {
	return fmt.Sprintf("AbortConfirmed %d %s", e.ID, e.Attempt)
}

// String is one line.
func (e Replanned) String() string { return fmt.Sprintf("Replanned %d tasks", len(e.Graph.Tasks())) }

// String is one line.
func (e Closed) String() string { return fmt.Sprintf("Closed delete=%t", e.DeleteAll) }

// String is one line.
func (e InitLocation) String() string {
	return line(fmt.Sprintf("InitLocation %d %s", e.ID, e.Kind), "dir=", e.Directory)
}

// String is one line.
func (e CallHooks) String() string { return fmt.Sprintf("CallHooks %d", e.ID) }

// String is one line.
func (e SendTrigger) String() string {
	s := fmt.Sprintf("SendTrigger %d %s dir=%s to %s", e.ID, e.Kind, e.Dir, attempts(e.Attempts))
	if e.Base > 0 {
		s += fmt.Sprintf(" base=%d", e.Base)
	}
	if e.Format == job.FormatNative {
		s += " native"
	}
	if e.Final {
		s += " final"
	}
	return s + stopping(" ", e.Stop)
}

// String is one line.
func (e AckReply) String() string { return fmt.Sprintf("AckReply request=%d %s", e.Request, e.Verdict) }

// String is one line; the metadata is given by what it is made of.
func (e WriteMetadata) String() string {
	subtasks := 0
	for _, v := range e.Metadata.Vertices {
		subtasks += len(v.Subtasks)
	}
	s := fmt.Sprintf("WriteMetadata %d dir=%s vertices=%d subtasks=%d", e.ID, e.Dir, len(e.Metadata.Vertices), subtasks)
	if e.Stops {
		s += " stops"
	}
	if n := len(e.Metadata.MasterStates); n > 0 {
		s += fmt.Sprintf(" hooks=%d", n)
	}
	return s
}

// String is one line.
func (e SendNotifyComplete) String() string {
	return fmt.Sprintf("SendNotifyComplete %d to %s", e.ID, attempts(e.Attempts))
}

// String is one line.
func (e SendNotifyAborted) String() string {
	return fmt.Sprintf("SendNotifyAborted %d latest=%d to %s", e.ID, e.LatestCompleted, attempts(e.Attempts))
}

// String is one line.
func (e Discard) String() string {
	s := fmt.Sprintf("Discard %d dir=%s", e.ID, e.Dir)
	if e.Claimed {
		s += " claimed"
	}
	return s
}

// String is one line; the files are given by their number and the first few names.
func (e RemoveShared) String() string {
	named := e.Files[:min(len(e.Files), maxFilesNamed)]
	s := fmt.Sprintf("RemoveShared %d: %s", len(e.Files), strings.Join(named, " "))
	if more := len(e.Files) - len(named); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// String is one line.
func (e Reply) String() string {
	s := fmt.Sprintf("Reply request=%d", e.Request)
	if e.ID != 0 {
		s += fmt.Sprintf(" checkpoint=%d", e.ID)
	}
	if e.Reason == checkpoint.None {
		return s + fmt.Sprintf(" dir=%s duration=%s", e.Dir, e.Duration)
	}
	return line(s, "reason=", string(e.Reason), "message=", quote(e.Message))
}

// String is one line.
func (e Completed) String() string {
	s := fmt.Sprintf("%s %d completed in %s, %s", e.Kind, e.ID, e.Duration.Round(10*time.Microsecond), size(e.Bytes))
	if e.Final {
		s += ", the final one"
	}
	return s + stopping(", the job ends with it: ", e.Stop)
}

// String is one line.
func (e Aborted) String() string {
	return line(fmt.Sprintf("%s %d aborted:", e.Kind, e.ID), "", string(e.Reason), "message=", quote(e.Message))
}

// String is one line.
func (e Degraded) String() string { return "degraded: " + e.Message }

// String is one line.
func (e Recovered) String() string {
	return fmt.Sprintf("degraded no longer: a checkpoint has completed after %s", e.After.Round(time.Millisecond))
}

// String is one line.
func (e FailJob) String() string {
	s := "FailJob class=" + e.Failure.Class.String()
	if e.Attempt != (job.AttemptID{}) {
		s += " attempt=" + e.Attempt.String()
	}
	return s + " message=" + quote(e.Failure.String())
}

// String is one line.
func (e CancelJob) String() string { return "CancelJob with " + e.Dir }

// stopping names the way in which a checkpoint stops the job, if it does.
func stopping(prefix string, m job.StopMode) string {
	if m == job.StopNone {
		return ""
	}
	return prefix + m.String()
}

// String is one line, without the details of the subtasks.
func (s Stats) String() string {
	out := fmt.Sprintf("%d %s %s acked=%d/%d state=%s", s.ID, s.Kind, s.State, s.Acked, s.Tasks, size(s.Bytes))
	for _, took := range []struct {
		name string
		time.Duration
	}{{"sent", s.Sent}, {"duration", s.Duration}, {"notified", s.Notified}} {
		if took.Duration > 0 {
			out += " " + took.name + "=" + took.String()
		}
	}
	out = line(out, "dir=", s.Dir, "reason=", string(s.Reason), "message=", quote(s.Failure))
	if s.Final {
		out += " final"
	}
	out += stopping(" ", s.Stop)
	if s.Discarded {
		out += " discarded"
	}
	return out
}

// line appends name and value pairs, leaving out empty values.
func line(head string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			head += " " + pairs[i] + pairs[i+1]
		}
	}
	return head
}

func quote(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

// These keep the lines of big jobs short.
const (
	maxAttemptsNamed = 8
	maxFilesNamed    = 8
)

func attempts(list []job.AttemptID) string {
	var b strings.Builder
	for i, a := range list {
		if i == maxAttemptsNamed {
			fmt.Fprintf(&b, " and %d more", len(list)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(a.String())
	}
	return b.String()
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1fGiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1fKiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%dB", n)
}
