package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/node"
)

func (w *weir) versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "show the version of this binary", Args: takes(), RunE: func(*cobra.Command, []string) error {
		if w.json() {
			return writeJSON(w.process.Stdout, struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{node.Version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
		}
		line(w.process.Stdout, "%s version %s (%s %s/%s)", w.process.Name, node.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	}}
}
