package chaos

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
)

// The master hook of a job runs in the job master: its lease of the output directory must outlive kill -9 of that, keep another job away, and be
// free for it in the end.
func TestLease_OutlivesTheJobMasterAndKeepsOthersAway(t *testing.T) {
	c := startCluster(t, binaries, t.TempDir(), 1, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	input, output := filepath.Join(c.Dir, "flights.csv"), filepath.Join(c.Dir, "output")
	if err := os.WriteFile(input, []byte("origin,delay\n"+strings.Repeat("AAA,1\n", 100_000)), 0o644); err != nil {
		t.Fatal(err)
	}
	run := []string{
		"run", "flights", "--set", "input=" + input, "--set", "output=" + output, "--set", "lease=true", "--checkpoint-interval", "200ms",
	}
	id := job.ID(strings.TrimSpace(weir(ctx, t, c, 0, append(run, "--set", "rate=2000", "--detach")...)))
	before := awaitCompleted(ctx, t, c, id, 2)
	if err := c.KillJobMaster(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartJobMaster(); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitSlots(ctx, 2); err != nil {
		t.Fatal(err)
	}
	last := awaitCompleted(ctx, t, c, id, 2) // of this job master, which went on from the lease of the one before
	if last.Last.ID <= before.Last.ID {
		t.Errorf("checkpoint %d after %d", last.Last.ID, before.Last.ID)
	}
	if out := weir(ctx, t, c, 1, append(run, "--restart-strategy", "none")...); !strings.Contains(out, "leased to job "+string(id)) {
		t.Errorf("another job is not told whose the directory is: %s", out)
	}
	weir(ctx, t, c, 0, "cancel", string(id))
	if out := weir(ctx, t, c, 0, "checkpoint", "inspect", stored(ctx, t, c, id)); !strings.Contains(out, "MASTER HOOK") || !strings.Contains(out, "lease") {
		t.Errorf("the token is not in the checkpoint: %s", out)
	}
	weir(ctx, t, c, 0, append(run, "--from", stored(ctx, t, c, id))...)
	if _, err := os.Stat(filepath.Join(output, ".weir-lease")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lease outlives its job: %v", err)
	}
	audit(t, c)
}

// weir runs a command that must end with an exit code, and returns what it printed.
func weir(ctx context.Context, t *testing.T, c *harness.Cluster, code int, args ...string) string {
	t.Helper()
	cmd := c.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if got := cmd.ProcessState.ExitCode(); err != nil && !errors.As(err, &exit) || got != code {
		t.Fatalf("weir %s: exit code %d, want %d: %v\n%s%s", strings.Join(args, " "), got, code, err, &stdout, &stderr)
	}
	if code != 0 {
		return stderr.String()
	}
	return stdout.String()
}

// awaitCompleted waits until a job that runs has completed so many checkpoints of this job master.
func awaitCompleted(ctx context.Context, t *testing.T, c *harness.Cluster, id job.ID, n int) (last gateway.JobStatus) {
	t.Helper()
	enough := errors.New("enough")
	err := c.Jobs.Watch(ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if last = s; s.State == job.Running && s.Completed >= n {
			return enough
		}
		return nil
	})
	if last.Last == nil || last.Completed < n {
		t.Fatalf("job is %s with %d checkpoints (%s): %v", last.State, last.Completed, last.Detail, err)
	}
	return last
}

// stored is the path of the latest checkpoint of a job.
func stored(ctx context.Context, t *testing.T, c *harness.Cluster, id job.ID) string {
	t.Helper()
	s, err := c.Jobs.Get(ctx, id)
	if err != nil || s.Last == nil {
		t.Fatalf("job %s: %v", id, err)
	}
	return s.Last.Path
}
