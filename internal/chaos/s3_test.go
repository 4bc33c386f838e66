package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// startStore starts an object store, which this process and those that it starts find by their environment.
func startStore(t *testing.T) *s3test.Server {
	t.Helper()
	store, err := s3test.Start(t.Context(), t.TempDir(), "weir")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	for _, setting := range append(s3test.Env(), "AWS_ENDPOINT_URL_S3="+store.Endpoint()) {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
	return store
}

var inS3 = harness.Settings{CheckpointDir: "s3://weir/checkpoints", SavepointDir: "s3://weir/savepoints?part-size-mib=5"}

// manyOrigins is input with so many keys that the state of a task does not fit into its ack, and the answer.
func manyOrigins(t *testing.T, dir string, rows int) (input string, want []string) {
	t.Helper()
	const files, origins = 4, 20_000
	input = filepath.Join(dir, "input")
	if err := os.Mkdir(input, 0o755); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	type delays struct{ n, sum, least, most int }
	answer := map[int]*delays{}
	for i := range files {
		var b bytes.Buffer
		b.WriteString("origin,delay\n")
		for range rows / files {
			origin, delay := rng.IntN(origins), rng.IntN(200)-50
			fmt.Fprintf(&b, "O%d,%d\n", origin, delay)
			d := answer[origin]
			if d == nil {
				d = &delays{0, 0, delay, delay}
				answer[origin] = d
			}
			d.n, d.sum, d.least, d.most = d.n+1, d.sum+delay, min(d.least, delay), max(d.most, delay)
		}
		if err := os.WriteFile(filepath.Join(input, fmt.Sprintf("%d.csv", i)), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for origin, d := range answer {
		want = append(want, fmt.Sprintf("O%d,%d,%d,%d,%d", origin, d.n, d.sum, d.least, d.most))
	}
	slices.Sort(want)
	return input, want
}

func wantRows(t *testing.T, output string, want []string) {
	t.Helper()
	got, err := reference.OutputRows(output, "origin,flights,delay_sum,delay_min,delay_max")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d rows are not the %d that are wanted", len(got), len(want))
	}
}

// With all checkpoints and savepoints in an object store, the job master and executors are killed at random. The answer is exact, a savepoint gives it
// once more, and in the end there is neither an object nor an upload without a reason.
func TestKill9_CheckpointsInS3_IsExact(t *testing.T) {
	startStore(t)
	n := kills(t, 8)
	dir := t.TempDir()
	const rows = 400_000
	input, want := manyOrigins(t, dir, rows)
	c := startCluster(t, binaries, dir, 2, 4, inS3)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(n)*2*killPause)
	defer cancel()
	output := filepath.Join(dir, "output")
	rate := rows / 4 / int(1.25*float64(n+4)*killPause.Seconds()) // of rows and source: there must be enough of them for all kills
	run := []string{"run", "flights", "--set", "input=" + input, "--parallelism", "4", "--checkpoint-interval", "300ms"}
	cmd := c.Command(ctx, append(run, "--set", "output="+output, "--set", fmt.Sprintf("rate=%d", rate))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	masters, executors := killAnything(t, c, n, ended)
	if err := <-ended; err != nil {
		t.Fatalf("weir run after %d kills of the job master and %d of executors: %v\n%s", masters, executors, err, out.String())
	}
	wantRows(t, output, want)
	t.Logf("exact after %d kills of the job master and %d of executors: %s", masters, executors, strings.TrimSpace(out.String()))
	knowsTheEnd(t, c)
	id, err := c.Jobs.List(ctx)
	if err != nil || len(id) != 1 {
		t.Fatal(id, err)
	}

	// Tools without a cluster read what is there, and it can be gone on from.
	second := job.ID(strings.TrimSpace(weir(ctx, t, c, 0, append(run, "--set", "output="+output+"2", "--set", fmt.Sprintf("rate=%d", rate), "--detach")...)))
	awaitCompleted(ctx, t, c, second, 2)
	weir(ctx, t, c, 0, "savepoint", string(second), "--dir", c.SavepointDir())
	weir(ctx, t, c, 0, "cancel", string(second))
	list := weir(ctx, t, c, 0, "savepoint", "list", c.SavepointDir())
	at := ""
	for _, word := range strings.Fields(list) {
		if strings.Contains(word, "/savepoint-") {
			at = word
		}
	}
	if !strings.HasPrefix(at, "s3://weir/savepoints/savepoint-") || !strings.HasSuffix(at, "?part-size-mib=5") {
		t.Fatalf("no savepoint is listed: %s", list)
	}
	for _, tool := range [][]string{{"checkpoint", "verify"}, {"checkpoint", "inspect"}, {"state", "list"}, {"job", "check", "flights", "--set", "input=" + input, "--set", "output=" + output, "--from"}} {
		weir(ctx, t, c, 0, append(tool, at)...)
	}
	weir(ctx, t, c, 0, append(run, "--set", "output="+output+"3", "--from", at)...)
	wantRows(t, output+"3", want)
	weir(ctx, t, c, 0, "savepoint", "dispose", at)
	weir(ctx, t, c, 1, "checkpoint", "inspect", at)
	audit(t, c)
}

// Executors lose the way to the object store, and the job goes on without checkpoints, says so, and takes them again when the way is back.
func TestObjectStore_OutOfReachOfExecutors_DegradesTheJobAndNoMore(t *testing.T) {
	store := startStore(t)
	p, err := s3test.NewProxy(store.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	dir := t.TempDir()
	const rows = 400_000
	input, _ := manyOrigins(t, dir, rows)
	settings := inS3
	settings.ExecutorEnv = []string{"AWS_ENDPOINT_URL_S3=" + p.Endpoint()}
	c := startCluster(t, binaries, dir, 1, 4, settings)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	id, err := c.Jobs.Submit(ctx, gateway.Submission{
		JobName: "flights", Params: map[string]string{"input": input, "output": filepath.Join(dir, "output"), "rate": "1000"},
		Options: job.Options{Parallelism: 4, Checkpoint: job.CheckpointOptions{
			Interval: 200 * time.Millisecond, Timeout: 20 * time.Second, DegradedAfter: time.Second, TolerableFailures: 1000,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := awaitCompleted(ctx, t, c, id, 3)
	p.SetFaults(func(*http.Request) s3test.Fault { return s3test.Fault{Before: true} })
	broken := awaitStatus(t, c, id, "the condition DEGRADED", func(s gateway.JobStatus) bool { return s.Degraded != "" && s.Failed > before.Failed })
	p.SetFaults(nil)
	healed := awaitStatus(t, c, id, "its end", func(s gateway.JobStatus) bool { return s.Degraded == "" && s.Completed > broken.Completed+1 })
	if healed.Restarts != 0 || healed.State != job.Running {
		t.Errorf("the job is %s after %d restarts", healed.State, healed.Restarts)
	}
	t.Logf("degraded: %s; %d checkpoints failed", broken.Degraded, healed.Failed-before.Failed)
	weir(ctx, t, c, 0, "cancel", string(id))
	audit(t, c)
}
