//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirstream/weir/deploy/answer"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc"
)

const (
	executors   = 3
	parallelism = 4
	seconds     = 20 // that the input is stretched to
)

// A cluster of containers counts flights, loses one executor to kill -9, and must give the right answer.
func TestCompose_FlightsSurviveAKilledContainer(t *testing.T) {
	input, output := t.TempDir(), t.TempDir()
	if err := os.Chmod(output, 0o777); err != nil { // the containers' user is not ours
		t.Fatal(err)
	}
	want := prepare(t, filepath.Join(input, "flights.csv"))
	c := start(t, executors, "WEIR_PORT=0", "WEIR_HTTP_PORT=0", "WEIR_SLOTS=2", "WEIR_INPUT="+input, "WEIR_OUTPUT="+output)
	c.healthy("jobmaster", 1)
	c.healthy("taskexecutor", executors)
	address := c.must("port", "jobmaster", "6123")

	conn, err := rpc.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	jobs := rpc.NewJobs(conn)
	awaitSlots(t, jobs, 2*executors)

	client := submit(t, c.root, address, want)
	status := watch(t, jobs, func() {
		victim := c.containers("taskexecutor")[0]
		t.Logf("kill -9 of container %s", victim)
		docker(t, "kill", "--signal", "KILL", victim)
	})
	if err := client.Wait(); err != nil {
		t.Errorf("weir run: %v\n%s", err, client.Stderr)
	}
	if status.State != job.Finished || status.Restarts == 0 {
		t.Fatalf("the job is %s after %d restarts, want FINISHED after at least one: %s", status.State, status.Restarts, status.Detail)
	}
	if err := want.Check(output); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d flights from %d origins counted exactly once; %d checkpoints, %d restarts", want.Flights, len(want.Rows), status.Completed, status.Restarts)
}

// prepare writes the input and returns its answer: the first 100,000 flights of the reference data where they are, else the sample.
func prepare(t *testing.T, path string) answer.Answer {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	data, err := referenceFlights(filepath.Dir(root))
	if errors.Is(err, os.ErrNotExist) {
		t.Log("the reference data is not beside the checkout: the sample is used")
		data, err = os.ReadFile(filepath.Join(root, "examples", "data", "flights-20k.csv"))
	}
	if err == nil {
		err = os.WriteFile(path, data, 0o644) //nolint:gosec // read by another user
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := answer.Count(path)
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// referenceFlights unpacks the flights; a plain file can be read by several sources at once.
func referenceFlights(above string) ([]byte, error) {
	f, err := os.Open(filepath.Join(above, "shared", "data", "flights-100k.csv.gz"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func awaitSlots(t *testing.T, jobs gateway.Jobs, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		have := 0
		list, err := jobs.TaskExecutors(ctx)
		for _, e := range list {
			have += e.Slots
		}
		if err == nil && have == n {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d of %d slots are registered: %v", have, n, err)
		}
	}
}

// submit starts the command line outside the containers, as a person would.
func submit(t *testing.T, root, address string, want answer.Answer) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "weir"), "run", "flights", "--jobmaster", address,
		"--parallelism", fmt.Sprint(parallelism), "--checkpoint-interval", "500ms",
		"--set", "input=/input/flights.csv", "--set", "output=/output", "--set", fmt.Sprintf("rate=%d", want.Flights/seconds))
	cmd.Stderr = &bytes.Buffer{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// watch follows the only job to its end, and calls kill once, after its third checkpoint.
func watch(t *testing.T, jobs gateway.Jobs, kill func()) (last gateway.JobStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var id job.ID
	for id == "" {
		list, err := jobs.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			id = list[0].ID
			break
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("weir run has submitted no job")
		}
	}
	killed := false
	err := jobs.Watch(ctx, id, func(s gateway.JobStatus, events []gateway.JobEvent) error {
		last = s
		for _, e := range events {
			t.Log(e.Text)
		}
		if !killed && s.Completed >= 3 {
			killed = true
			kill()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}
