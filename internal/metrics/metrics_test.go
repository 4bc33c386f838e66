package metrics

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// fake is a job master that shows what it is told.
type fake struct {
	jobs        []gateway.JobStatus
	histories   map[job.ID]gateway.CheckpointHistory // a job without one was forgotten after it was listed
	executors   []gateway.ExecutorStatus
	listErr     error
	executorErr error
}

func (f *fake) List(context.Context) ([]gateway.JobStatus, error) { return f.jobs, f.listErr }

func (f *fake) Checkpoints(_ context.Context, id job.ID) (gateway.CheckpointHistory, error) {
	h, ok := f.histories[id]
	if !ok {
		return h, gateway.JobNotFound(id)
	}
	return h, nil
}

func (f *fake) TaskExecutors(context.Context) ([]gateway.ExecutorStatus, error) {
	return f.executors, f.executorErr
}

// full has a value for every metric.
func full() *fake {
	done := gateway.CheckpointStatus{
		ID: 7, Kind: checkpoint.Checkpoint, State: gateway.CheckpointCompleted, Triggered: time.Unix(100, 0), Duration: 2 * time.Second, StateBytes: 50,
	}
	bad := gateway.JobStatus{ID: "a", Name: "bad \xff name", State: job.Running, Conditions: gateway.Conditions{Degraded: "why"}}
	return &fake{
		jobs: []gateway.JobStatus{bad, {ID: "gone", State: job.Finished}},
		histories: map[job.ID]gateway.CheckpointHistory{"a": {
			LastRestore: &gateway.RestoreStatus{ID: 3, Time: time.Unix(90, 0)}, Checkpoints: []gateway.CheckpointStatus{done},
		}},
		executors: []gateway.ExecutorStatus{{Slots: 3, FreeSlots: 1}, {Slots: 2}},
	}
}

func registered(t *testing.T, f *fake) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	for _, err := range []error{
		RegisterJobMaster(t.Context(), reg, f), RegisterBuild(reg, "v1"),
		RegisterTaskExecutor(reg, func() TaskExecutor { return TaskExecutor{true, 4, 3, 2, 10, 1000, 500, 60, 7, 8} }),
		RegisterState(reg, func() State { return State{2, 1 << 20, 3, 4, 5, 6, 7, 8, 1500 * time.Millisecond} }),
		RegisterStorage(reg, func() Requests { return Requests{[]Operation{{"put", 5, 2, 1, 3 * time.Second}}, 10, 20} }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return reg
}

// gathered has the value of each series of one value, by its name, for metrics of one series.
func gathered(t *testing.T, reg prometheus.Gatherer) (map[string]float64, error) {
	t.Helper()
	families, err := reg.Gather()
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out, err
}

func TestMetrics_HaveTheValuesThatAreShown(t *testing.T) {
	got, err := gathered(t, registered(t, full()))
	if err != nil {
		t.Fatal(err)
	}
	if since := got["weir_checkpoint_since_last_completed_seconds"]; since < 1e9 {
		t.Errorf("%f seconds since a checkpoint of 1970", since)
	}
	delete(got, "weir_checkpoint_since_last_completed_seconds")
	want := map[string]float64{
		"weir_jobs": 1, "weir_task_executors": 2, "weir_slots": 5, "weir_slots_free": 1, "weir_build_info": 1,
		"weir_state_operators":             2,
		"weir_state_memory_bytes":          1 << 20,
		"weir_state_reads_total":           3,
		"weir_state_seals_total":           4,
		"weir_state_sealed_entries_total":  5,
		"weir_state_sealed_bytes_total":    6,
		"weir_state_evicted_entries_total": 7,
		"weir_state_waits_total":           8,
		"weir_state_wait_seconds_total":    1.5,
		"weir_job_restarts_total":          0, "weir_job_tasks": 0, "weir_job_tasks_running": 0, "weir_job_degraded": 1,
		"weir_checkpoint_completed_total": 0, "weir_checkpoint_failed_total": 0, "weir_checkpoint_restored_total": 0, "weir_checkpoint_in_progress": 0,
		"weir_checkpoint_last_completed_id": 7, "weir_checkpoint_last_completed_duration_seconds": 2, "weir_checkpoint_last_completed_size_bytes": 50,
		"weir_checkpoint_last_completed_timestamp_seconds": 102,
		"weir_checkpoint_last_restored_id":                 3, "weir_checkpoint_last_restored_timestamp_seconds": 90,
		"weir_taskexecutor_registered": 1, "weir_taskexecutor_slots": 4, "weir_taskexecutor_tasks": 3, "weir_taskexecutor_tasks_running": 2,
		"weir_taskexecutor_snapshots_total": 10, "weir_taskexecutor_snapshot_bytes_total": 1000,
		"weir_taskexecutor_restored_local_bytes_total": 500, "weir_taskexecutor_restored_storage_bytes_total": 60,
		"weir_taskexecutor_local_copies_damaged_total": 7, "weir_taskexecutor_local_copies_failed_total": 8,
		"weir_storage_requests_total": 5, "weir_storage_requests_failed_total": 2, "weir_storage_retries_total": 1, "weir_storage_request_seconds_total": 3,
		"weir_storage_read_bytes_total": 10, "weir_storage_written_bytes_total": 20,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestMetrics_AreNamedAsPrometheusWants(t *testing.T) {
	families, err := registered(t, full()).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// docs/metrics.md names the metrics that there are, and no others.
func TestMetrics_AreDocumented(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(weir_[a-z_]+)`").FindAllStringSubmatch(string(doc), -1)
	var documented []string
	for _, m := range named {
		documented = append(documented, m[1])
	}
	all, err := gathered(t, registered(t, full()))
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if !slices.Contains(documented, name) {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
	for _, name := range documented {
		if _, ok := all[name]; !ok {
			t.Errorf("docs/metrics.md names %s, which does not exist", name)
		}
	}
}

func TestMetrics_AJobWithoutCheckpoints_HasATimeSinceItsSubmission(t *testing.T) {
	f := full()
	f.histories["a"] = gateway.CheckpointHistory{}
	f.jobs[0].Submitted = time.Now().Add(-time.Hour)
	got, err := gathered(t, registered(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if since := got["weir_checkpoint_since_last_completed_seconds"]; since < 3600 || since > 4000 {
		t.Errorf("%f seconds, want an hour", since)
	}
	for name := range got {
		if strings.HasPrefix(name, "weir_checkpoint_last_") {
			t.Errorf("%s has a value, but there is no checkpoint and no restore", name)
		}
	}
}

// What cannot be read is an error of the scrape and not a zero; the rest is there.
func TestMetrics_WhatCannotBeReadIsAnError(t *testing.T) {
	f := full()
	f.executorErr = errors.New("registry is broken")
	got, err := gathered(t, registered(t, f))
	if err == nil || !strings.Contains(err.Error(), "registry is broken") {
		t.Errorf("error %v", err)
	}
	if _, ok := got["weir_slots"]; ok || got["weir_checkpoint_last_completed_id"] != 7 {
		t.Errorf("values %v", got)
	}
	f = full()
	f.listErr = errors.New("no list")
	got, err = gathered(t, registered(t, f))
	if err == nil || !strings.Contains(err.Error(), "no list") {
		t.Errorf("error %v", err)
	}
	if _, ok := got["weir_jobs"]; ok || got["weir_taskexecutor_slots"] != 4 {
		t.Errorf("values %v", got)
	}
}
