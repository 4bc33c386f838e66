package metrics

import "github.com/prometheus/client_golang/prometheus"

// TaskExecutor is what a task executor does and has done since its process was started.
type TaskExecutor struct {
	Registered    bool
	Slots         int
	Tasks         int   // that are not over
	TasksRunning  int   // of Tasks
	Snapshots     int64 // that were made durable, of checkpoints that were aborted later too
	SnapshotBytes int64

	RestoredLocalBytes   int64 // of state that tasks read from copies on a disk of the executor
	RestoredStorageBytes int64 // that they read from the checkpoint storage
	LocalCopiesDamaged   int64 // copies that were not what they should be; the storage was read instead
	LocalCopiesFailed    int64 // copies that could not be made or deleted
}

// RegisterTaskExecutor registers the metrics of a task executor.
func RegisterTaskExecutor(reg prometheus.Registerer, read func() TaskExecutor) error {
	add, register := valuesOf(reg, read)
	add(gauge, "weir_taskexecutor_registered", "1 while the executor is registered at a job master, else 0.", func(e TaskExecutor) float64 { return flag(e.Registered) })
	add(gauge, "weir_taskexecutor_slots", "Slots of the executor.", func(e TaskExecutor) float64 { return float64(e.Slots) })
	add(gauge, "weir_taskexecutor_tasks", "Tasks of the executor that are not over.", func(e TaskExecutor) float64 { return float64(e.Tasks) })
	add(gauge, "weir_taskexecutor_tasks_running", "Tasks of the executor that are RUNNING.", func(e TaskExecutor) float64 { return float64(e.TasksRunning) })
	add(counter, "weir_taskexecutor_snapshots_total", "Snapshots of tasks that were made durable.", func(e TaskExecutor) float64 { return float64(e.Snapshots) })
	add(counter, "weir_taskexecutor_snapshot_bytes_total", "State in these snapshots.", func(e TaskExecutor) float64 { return float64(e.SnapshotBytes) })
	add(counter, "weir_taskexecutor_restored_local_bytes_total", "State that tasks read from local copies when they started.", func(e TaskExecutor) float64 { return float64(e.RestoredLocalBytes) })
	add(counter, "weir_taskexecutor_restored_storage_bytes_total", "State that tasks read from files in the checkpoint storage when they started.", func(e TaskExecutor) float64 { return float64(e.RestoredStorageBytes) })
	add(counter, "weir_taskexecutor_local_copies_damaged_total", "Local copies of state that were damaged, so that the storage was read instead.", func(e TaskExecutor) float64 { return float64(e.LocalCopiesDamaged) })
	add(counter, "weir_taskexecutor_local_copies_failed_total", "Local copies of state that could not be made or deleted.", func(e TaskExecutor) float64 { return float64(e.LocalCopiesFailed) })
	return register()
}

// RegisterBuild registers what the process is.
func RegisterBuild(reg prometheus.Registerer, version string) error {
	d := describe("weir_build_info", "1; the label has the version of the program.", "version")
	return reg.Register(&collector{descs: []*prometheus.Desc{d}, collect: func(out chan<- prometheus.Metric) {
		out <- prometheus.MustNewConstMetric(d, gauge, 1, label(version))
	}})
}
