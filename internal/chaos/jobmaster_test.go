package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// Executors and the job master are killed while a weir run in the foreground looks on. It must see the end of the very job that it submitted,
// with the exact answer, and nothing may be left of its checkpoints; and a job master that starts afterwards must know that the job has ended.
func TestKill9_JobMasterAndExecutors_IsExact(t *testing.T) {
	input, want := reference.Data(t, "flights-3m.csv.gz"), reference.Data(t, filepath.Join("expected", "flights-3m-by-origin.csv.gz"))
	c := startCluster(t, binaries, t.TempDir(), 2, 4)
	n := kills(t, 12)
	rate := 3_000_000 / int(1.25*float64(n+4)*killPause.Seconds()) // of rows: there must be enough of them for all kills
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*2*killPause)
	defer cancel()
	output := filepath.Join(c.Dir, "output")
	cmd := c.Command(ctx, "run", "flights", "--set", "input="+input, "--set", "output="+output, "--set", fmt.Sprintf("rate=%d", rate),
		"--parallelism", "4", "--checkpoint-interval", "500ms")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	masters, executors := killAnything(t, c, n, ended)
	if err := <-ended; err != nil {
		t.Fatalf("weir run after %d kills of the job master and %d of executors: %v\n%s\n%s", masters, executors, err, stdout.String(), stderr.String())
	}
	if masters == 0 || executors == 0 {
		t.Fatalf("only %d kills of the job master and %d of executors before the job was over", masters, executors)
	}
	if diff := reference.DiffRows(t, output, want, "origin,flights,delay_sum,delay_min,delay_max"); diff != "" {
		t.Fatalf("after %d kills of the job master and %d of executors: %s", masters, executors, diff)
	}
	t.Logf("exact after %d kills of the job master and %d of executors: %s", masters, executors, strings.TrimSpace(stdout.String()))
	knowsTheEnd(t, c)
	audit(t, c)
}

// killAnything kills the job master or an executor, or both, at random moments, and starts them again.
func killAnything(t *testing.T, c *harness.Cluster, n int, ended chan error) (masters, executors int) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("kills by seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for masters+executors < n {
		select {
		case err := <-ended:
			ended <- err
			return masters, executors
		case <-time.After(time.Duration((0.25 + 1.5*random.Float64()) * float64(killPause))):
		}
		if random.IntN(3) == 0 {
			savepoint(t, c)
		}
		master, victim := random.IntN(3), fmt.Sprintf("e%d", 1+random.IntN(2))
		switch { // the second hits what the first has missed, however few there are
		case masters > 0 && executors == 0:
			master = 0
		case executors > 0 && masters == 0:
			master = 2
		}
		if master > 0 { // two of three times
			masters++
			must(c.KillJobMaster())
		}
		if master < 2 {
			executors++
			must(c.KillExecutor(victim))
			must(c.StartExecutor(victim, 4))
		}
		if master > 0 {
			must(c.StartJobMaster())
		}
	}
	return masters, executors
}

// savepoint asks for a savepoint of the job. It may not come about; then it says why within its time.
func savepoint(t *testing.T, c *harness.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	jobs, err := c.Jobs.List(ctx)
	if err == nil && len(jobs) == 1 {
		_, err = c.Jobs.TriggerSavepoint(ctx, gateway.TriggerSavepoint{Job: jobs[0].ID, Directory: c.SavepointDir()})
	}
	if gateway.CodeOf(err) == gateway.DeadlineExceeded {
		t.Errorf("a savepoint was neither taken nor refused: %v", err)
	}
}

// knowsTheEnd starts another job master: it shows the one job as FINISHED and runs nothing.
func knowsTheEnd(t *testing.T, c *harness.Cluster) {
	if err := c.KillJobMaster(); err != nil {
		t.Fatal(err)
	}
	if err := c.StartJobMaster(); err != nil {
		t.Fatal(err)
	}
	if err := c.AwaitSlots(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	jobs, err := c.Jobs.List(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].State != job.Finished {
		t.Fatalf("jobs after the restart: %+v, %v", jobs, err)
	}
	seen, err := c.Jobs.TaskExecutors(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range seen {
		if e.FreeSlots != e.Slots {
			t.Errorf("executor %s has %d of %d slots free, although no job runs", e.ID, e.FreeSlots, e.Slots)
		}
	}
	var last gateway.JobStatus
	err = c.Jobs.Watch(t.Context(), jobs[0].ID, func(s gateway.JobStatus, _ []gateway.JobEvent) error { last = s; return nil })
	if err != nil || last.State != job.Finished {
		t.Errorf("a watcher sees %s, %v", last.State, err)
	}
}
