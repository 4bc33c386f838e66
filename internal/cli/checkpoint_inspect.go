package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/inspect"
)

func (w *weir) checkpointInspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "inspect PATH", Short: "show what is in a stored checkpoint or savepoint, without a cluster", Args: takes("PATH"),
		Long: "Shows what is in the checkpoint or savepoint whose directory, or whose _metadata file, is at PATH (a path or a URL). It reads the\n" +
			"metadata only; weir checkpoint verify reads the state too.",
	}
	subtasks := cmd.Flags().Bool("subtasks", false, "show the part of each subtask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := inspect.Read(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		r := inspect.NewReport(s.Metadata)
		if w.json() {
			return writeJSON(w.process.Stdout, view.OfStored(s.Location, r))
		}
		writeStored(w.process.Stdout, r, *subtasks)
		return nil
	}
	return cmd
}

func writeStored(out io.Writer, r inspect.Report, subtasks bool) {
	line(out, "%s %d of job %s (%s)", r.Kind, r.ID, r.Job, r.JobName)
	line(out, "triggered %s, %s in %s, fingerprint %s", r.Triggered.UTC().Format(time.RFC3339), format.Bytes(r.Bytes), format.Counted(r.Files, "state file"), r.Fingerprint)
	t := newTable("VERTEX", "PARALLELISM", "OPERATOR", "KIND", "ITEMS", "SIZE", "STATES")
	for _, v := range r.Vertices {
		for _, op := range v.Operators {
			parallelism := fmt.Sprintf("%d of at most %d", v.Parallelism, v.MaxParallelism)
			if v.Ended > 0 {
				parallelism += fmt.Sprintf(", %d ended", v.Ended)
			}
			t.add(string(v.Vertex), parallelism, op.Operator.ID, op.Operator.Kind, strconv.Itoa(op.Items), format.Bytes(op.Bytes), storedStates(op))
		}
	}
	t.write(out)
	if len(r.Hooks) > 0 {
		line(out, "")
		hooks := newTable("MASTER HOOK", "SIZE")
		for _, h := range r.Hooks {
			hooks.add(h.Hook, format.Bytes(h.Bytes))
		}
		hooks.write(out)
	}
	if subtasks {
		line(out, "")
		writeStoredSubtasks(out, r)
	}
}

// storedStates lists keyed states with their types.
func storedStates(op inspect.OperatorReport) string {
	var states []string
	for _, s := range op.States {
		states = append(states, fmt.Sprintf("%s: %s of %s by %s", s.Name, s.Kind, s.ValueType, s.KeyType))
	}
	return strings.Join(states, "; ")
}

func writeStoredSubtasks(out io.Writer, r inspect.Report) {
	t := newTable("OPERATOR", "SUBTASK", "KEY GROUPS", "ITEMS", "SIZE", "FILES")
	for _, v := range r.Vertices {
		for _, op := range v.Operators {
			for _, s := range op.Subtasks {
				groups := ""
				if s.KeyGroups.Len() > 0 {
					groups = s.KeyGroups.String()
				}
				t.add(op.Operator.ID, strconv.Itoa(s.Subtask), groups, strconv.Itoa(s.Items), format.Bytes(s.Bytes), strings.Join(s.Files, ", "))
			}
		}
	}
	t.write(out)
}
