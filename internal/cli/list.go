package cli

import (
	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/stream"
)

// definitionView is a job that a binary has.
type definitionView struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  []parameterView `json:"parameters"`
}

type parameterView struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Default  string `json:"default"`
}

func (w *weir) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "list the jobs of this binary and their parameters", Args: takes(),
		RunE: func(*cobra.Command, []string) error {
			views := view.Each(w.jobs, viewDefinition)
			if w.json() {
				return writeJSON(w.process.Stdout, views)
			}
			t := newTable("JOB", "PARAMETER", "DEFAULT", "DESCRIPTION")
			for _, v := range views {
				t.add(v.Name, "", "", v.Description)
				for _, p := range v.Parameters {
					t.add("", p.Name, parameterNote(p), "")
				}
			}
			t.write(w.process.Stdout)
			return nil
		},
	}
}

func parameterNote(p parameterView) string {
	switch {
	case p.Required:
		return "(required)"
	case p.Default == "":
		return "(none)"
	}
	return p.Default
}

// viewDefinition runs the definition without parameters to see which it asks for. One that goes wrong for the lack of them is shown with those
// that it had asked for until then.
func viewDefinition(d stream.Definition) definitionView {
	j := stream.NewJob(d.Name, nil)
	func() {
		defer func() { _ = recover() }()
		_ = d.Build(j)
	}()
	return definitionView{d.Name, d.Description, view.Each(j.Parameters(), func(p stream.Parameter) parameterView {
		return parameterView{p.Name, p.Required, p.Default}
	})}
}
