package cli

import (
	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/node"
)

// addHTTPFlags adds the flags of a process that serves HTTP.
func addHTTPFlags(cmd *cobra.Command, config *node.HTTPConfig, listen string) {
	cmd.Flags().StringVar(&config.Listen, "http", listen, "`[HOST]:PORT` to serve /metrics, /healthz and /readyz on; empty: not at all")
	cmd.Flags().BoolVar(&config.Profiling, "http-pprof", false, "serve /debug/pprof too, which shows what the process does to everybody who reaches it")
}

func checkHTTP(config node.HTTPConfig) error {
	if config.Listen == "" {
		if config.Profiling {
			return usagef("--http-pprof needs --http [HOST]:PORT")
		}
		return nil
	}
	return checkAddress("http", config.Listen)
}
