// Package metrics shows the state of a process to Prometheus.
//
// Owns: the names, units, labels and help texts of the metrics; docs/metrics.md lists them.
//
// Promises: nothing is counted here. A scrape reads what the job master shows to people as well, so that the API, the log and the metrics cannot
// disagree, and the series of a job go when the job master forgets it. The number of series is bounded by the jobs that it remembers.
//
// Goroutines: none; a scrape runs on those of its caller, any number at a time.
//
// Not here: the HTTP listener (package node), what is measured (packages coordinator and taskexecutor).
//
// Start at: jobmaster.go.
package metrics
