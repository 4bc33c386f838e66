package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/inspect"
)

func (w *weir) savepointListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list DIR", Short: "list the savepoints and checkpoints that are stored below a directory, without a cluster", Args: takes("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := inspect.List(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if w.json() {
				return writeJSON(w.process.Stdout, view.Each(list, viewListed))
			}
			now := time.Now()
			t := newTable("PATH", "JOB", "NAME", "ID", "KIND", "TRIGGERED", "SIZE", "WHOLE")
			for _, l := range list {
				v := viewListed(l)
				row := []string{v.Path, v.Job, v.JobName, "", v.Kind, "", format.Bytes(v.Bytes), "yes"}
				if l.Metadata != nil {
					row[3], row[5] = strconv.FormatInt(v.ID, 10), format.Age(now, l.Metadata.Timestamp)
				}
				if v.Problem != "" {
					row[7] = "no: " + v.Problem
				}
				t.add(row...)
			}
			t.write(w.process.Stdout)
			return nil
		},
	}
}

func viewListed(l inspect.Listed) view.Listed {
	if l.Problem == nil {
		return view.OfListed(l, "")
	}
	return view.OfListed(l, errorLine(l.Problem))
}
