package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/cli/format"
	"github.com/weirstream/weir/internal/cli/view"
	"github.com/weirstream/weir/internal/gateway"
)

func (w *weir) executorsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "executors", Short: "list the task executors of the cluster", Args: takes()}
	return w.query(cmd, askTimeout, func(ctx context.Context, jobs gateway.Jobs, _ []string) error {
		list, err := jobs.TaskExecutors(ctx)
		if err != nil {
			return err
		}
		if w.json() {
			return writeJSON(w.process.Stdout, view.Each(list, view.OfExecutor))
		}
		now := time.Now()
		t := newTable("EXECUTOR ID", "ADDRESS", "FREE SLOTS", "REGISTERED", "HEARTBEAT", "VERSION", "JOBS")
		for _, e := range list {
			t.add(string(e.ID), e.Address, strconv.Itoa(e.FreeSlots)+"/"+strconv.Itoa(e.Slots), format.Age(now, e.Registered),
				format.Age(now, e.Heartbeat), e.Version, strings.Join(e.Jobs, ","))
		}
		t.write(w.process.Stdout)
		return nil
	})
}
