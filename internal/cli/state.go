package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/inspect"
	"github.com/weirstream/weir/internal/job"
)

func (w *weir) stateCommand() *cobra.Command {
	return group("state", "list, look up and compare the state in stored checkpoints and savepoints, without a cluster",
		w.stateListCommand(), w.stateGetCommand(), w.stateDiffCommand())
}

// noAnswer is an error that keeps a command from its answer, where 1 is an answer.
func noAnswer(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &exitError{exitUsage, err, false}
}

func (w *weir) stateListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list PATH", Short: "show how much is in each state of a stored checkpoint or savepoint", Args: takes("PATH"),
		Long: "Reads all state of the checkpoint or savepoint at PATH (its directory or its _metadata file, a path or a URL) and shows for each\n" +
			"declared state, and for the items of sources and sinks, its types, its number of entries and its size.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := inspect.Read(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		list, err := s.States(cmd.Context())
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.Each(list, view.OfState))
		}
		t := newTable("OPERATOR", "STATE", "KIND", "KEY", "VALUE", "ENTRIES", "SIZE", "LARGEST KEY GROUP", "KEY GROUPS")
		for _, r := range list {
			key, value := view.Types(r)
			row := []string{r.Operator, r.Name, kindOf(r.Kind, r.Mode), key, value, format.Count(r.Entries), format.Bytes(r.Bytes), "", ""}
			if r.KeyGroups.Len() > 0 {
				row[7], row[8] = format.Bytes(r.LargestBytes), r.KeyGroups.String()
				if r.LargestBytes > 0 {
					row[7] += " in " + strconv.Itoa(r.LargestGroup)
				}
			}
			t.add(row...)
		}
		t.write(w.process.Stdout)
		return nil
	}
	return cmd
}

// kindOf is the kind of a state for people: a list state is nothing without its mode.
func kindOf(kind string, mode job.ListMode) string {
	if mode == 0 || mode == job.BroadcastState {
		return kind
	}
	return kind + " (" + mode.String() + ")"
}

func (w *weir) stateGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get PATH OPERATOR STATE KEY", Short: "print the value of a key", Args: takes("PATH", "OPERATOR", "STATE", "KEY"),
		Long: "Prints the value that a state has for a key, in the checkpoint or savepoint at PATH. KEY is written as it is when it is a string, an\n" +
			"integer or a bool, and as JSON when it is a struct or an array; after -- it may begin with a minus. Of an operator's list state KEY is the\n" +
			"number of a subtask, and the value its elements. The value is JSON; a string is printed as it is. Exits with 0 when there is a value, 1 when the state has none for the key, 2 when that cannot be told.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := inspect.Read(cmd.Context(), args[0])
		if err != nil {
			return noAnswer(err)
		}
		e, err := s.Get(cmd.Context(), args[1], args[2], args[3])
		if errors.Is(err, inspect.ErrNoKey) {
			return err
		}
		if err != nil {
			return noAnswer(err)
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.OfEntry(s.Location, e))
		}
		line(w.process.Stdout, "%s", view.Text(e.Value))
		return nil
	}
	return cmd
}

func (w *weir) stateDiffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff PATH1 PATH2", Short: "compare the state of two checkpoints or savepoints", Args: takes("PATH1", "PATH2"),
		Long: "Compares the state of all operators in two checkpoints or savepoints, at any parallelism: for each state, how many keys (of operator list state: items)\n" +
			"PATH2 has more, less, and with another value. Exits with 0 when nothing differs, 1 when something does, 2 when that cannot be told.",
	}
	keys := cmd.Flags().Int("keys", 3, "how many keys are named of each difference, 0 to 10000")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *keys < 0 || *keys > 10_000 {
			return usagef("--keys=%d: it can be 0 to 10000", *keys)
		}
		return w.stateDiff(cmd.Context(), args[0], args[1], *keys)
	}
	return cmd
}

func (w *weir) stateDiff(ctx context.Context, first, second string, keys int) error {
	a, err := inspect.Read(ctx, first)
	if err != nil {
		return noAnswer(err)
	}
	b, err := inspect.Read(ctx, second)
	if err != nil {
		return noAnswer(err)
	}
	list, err := inspect.Diff(ctx, a, b, keys)
	if err != nil {
		return noAnswer(err)
	}
	v := view.OfStateDiffs(a, b, list)
	if w.json() {
		if err := writeJSON(w.process.Stdout, v); err != nil {
			return err
		}
	} else {
		t := newTable("OPERATOR", "STATE", "KIND", "ADDED", "REMOVED", "CHANGED", "SAME", "NOTE")
		for i, d := range v.States {
			t.add(d.Operator, d.State, kindOf(d.Kind, list[i].Mode), format.Count(d.Added), format.Count(d.Removed), format.Count(d.Changed), format.Count(d.Same), d.Note())
		}
		t.write(w.process.Stdout)
	}
	if n := v.Different; n > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s of %d differ between %s and %s", format.Counted(n, "state"), len(list), a.Location, b.Location), false}
	}
	return nil
}
