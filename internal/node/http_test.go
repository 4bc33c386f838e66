package node_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/node"
)

// get asks over a connection of its own, so that none is left to wait for.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

func wantPage(t *testing.T, url string, status int, parts ...string) string {
	t.Helper()
	got, body := get(t, url)
	if got != status {
		t.Errorf("%s: status %d, want %d: %s", url, got, status, body)
	}
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%s: no %q in the answer", url, part)
		}
	}
	return body
}

// process runs f and gives the address that its HTTP server listens on, and what ends it.
func process(t *testing.T, f func(ctx context.Context, ready func(address string)) error) (url string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- f(ctx, func(address string) { ready <- address }) }()
	select {
	case address := <-ready:
		return "http://" + address, func() error {
			cancel()
			return <-done
		}
	case err := <-done:
		cancel()
		t.Fatalf("it does not start: %v", err)
	}
	return "", nil
}

// closedAddress is one that nobody listens on.
func closedAddress(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String()
}

// A cluster serves its state over HTTP: an executor is ready when it is registered, the metrics tell of what a job has done.
func TestHTTP_ShowsHealthAndMetrics(t *testing.T) {
	master := closedAddress(t)
	executor, stopExecutor := process(t, func(ctx context.Context, ready func(string)) error {
		return node.RunTaskExecutor(ctx, node.TaskExecutorConfig{
			ID: "e1", JobMaster: master, Listen: "127.0.0.1:0", Slots: 2, Jobs: examples.Jobs(), Log: zap.NewNop(),
			HTTP: node.HTTPConfig{Listen: "127.0.0.1:0", Profiling: true, Ready: ready},
		})
	})
	wantPage(t, executor+"/healthz", http.StatusOK, "ok\n")
	wantPage(t, executor+"/readyz", http.StatusServiceUnavailable, "not registered at the job master at "+master)
	wantPage(t, executor+"/metrics", http.StatusOK, "\nweir_taskexecutor_registered 0\n", "\nweir_build_info{version=", "\ngo_goroutines ")

	jobMaster, stopJobMaster := process(t, func(ctx context.Context, ready func(string)) error {
		return node.RunJobMaster(ctx, node.JobMasterConfig{
			Listen: master, CheckpointDir: t.TempDir(), Log: zap.NewNop(), HTTP: node.HTTPConfig{Listen: "127.0.0.1:0", Ready: ready},
		})
	})
	until(t, executor+"/readyz", http.StatusOK)
	until(t, jobMaster+"/readyz", http.StatusOK)
	wantPage(t, jobMaster+"/metrics", http.StatusOK, "\nweir_task_executors 1\n", "\nweir_slots_free 2\n", `weir_jobs{state="RUNNING"} 0`)

	wantPage(t, executor+"/debug/pprof/", http.StatusOK, "goroutine")
	wantPage(t, jobMaster+"/debug/pprof/", http.StatusNotFound)
	wantPage(t, jobMaster+"/", http.StatusNotFound)

	if err := stopJobMaster(); err != nil {
		t.Errorf("job master: %v", err)
	}
	until(t, executor+"/readyz", http.StatusServiceUnavailable)
	if err := stopExecutor(); err != nil {
		t.Errorf("executor: %v", err)
	}
}

func until(t *testing.T, url string, status int) {
	t.Helper()
	for {
		if got, _ := get(t, url); got == status {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatalf("%s does not become %d", url, status)
		}
	}
}

// What a job has done is in the metrics of both processes.
func TestHTTP_MetricsTellOfAJob(t *testing.T) {
	input := reference.Data(t, "kjv.txt.gz")
	c := startCluster(t)
	executor, stop := process(t, func(ctx context.Context, ready func(string)) error {
		return node.RunTaskExecutor(ctx, node.TaskExecutorConfig{
			ID: "e1", JobMaster: c.address, Listen: "127.0.0.1:0", Slots: 1, Jobs: examples.Jobs(), Log: zap.NewNop(),
			HTTP: node.HTTPConfig{Listen: "127.0.0.1:0", Ready: ready},
		})
	})
	until(t, executor+"/readyz", http.StatusOK)
	s := c.run(gateway.Submission{
		JobName: "wordcount", Params: map[string]string{"input": input, "output": t.TempDir()},
		Options: job.Options{Parallelism: 1, Checkpoint: job.CheckpointOptions{Interval: -1}},
	})
	if s.State != job.Finished || s.Completed == 0 {
		t.Fatalf("job is %s after %d checkpoints: %s", s.State, s.Completed, s.Detail)
	}
	page := wantPage(t, executor+"/metrics", http.StatusOK, "weir_taskexecutor_slots 1\n")
	for _, never := range []string{"\nweir_taskexecutor_snapshots_total 0\n", "\nweir_taskexecutor_snapshot_bytes_total 0\n"} {
		if strings.Contains(page, never) {
			t.Errorf("the executor has taken snapshots, but its metrics say %q", never)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestHTTP_TakenPort_IsAnErrorThatNamesTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	web := node.HTTPConfig{Listen: taken.Addr().String()}
	want := "address " + web.Listen + " is in use by another process; stop it or choose another with --http"
	err = node.RunJobMaster(t.Context(), node.JobMasterConfig{Listen: "127.0.0.1:0", CheckpointDir: t.TempDir(), Log: zap.NewNop(), HTTP: web})
	if err == nil || err.Error() != want {
		t.Errorf("job master: %v, want %s", err, want)
	}
	err = node.RunTaskExecutor(t.Context(), node.TaskExecutorConfig{JobMaster: "127.0.0.1:1", Listen: "127.0.0.1:0", Slots: 1, Log: zap.NewNop(), HTTP: web})
	if err == nil || err.Error() != want {
		t.Errorf("task executor: %v, want %s", err, want)
	}
}
