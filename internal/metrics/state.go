package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is what the state backend on disk of a task executor does and has done.
type State struct {
	Operators  int64         // that keep their state on disk
	Budget     int64         // of memory for their entries, in bytes
	Reads      int64         // of keys that were not in memory
	Seals      int64         // writes of what had changed
	SealedRows int64         // entries in them
	Written    int64         // bytes in them
	Evicted    int64         // entries that were dropped from memory
	Waits      int64         // of tasks for a seal
	Waited     time.Duration // in all
}

// RegisterState registers the metrics of the state backend on disk.
func RegisterState(reg prometheus.Registerer, read func() State) error {
	add, register := valuesOf(reg, read)
	add(gauge, "weir_state_operators", "Operators, of all tasks, that keep their state on disk.", func(s State) float64 { return float64(s.Operators) })
	add(gauge, "weir_state_memory_bytes", "Memory for entries of such state.", func(s State) float64 { return float64(s.Budget) })
	add(counter, "weir_state_reads_total", "Keys that were looked up on disk, because they were not in memory.", func(s State) float64 { return float64(s.Reads) })
	add(counter, "weir_state_seals_total", "Seals: what had changed was written to disk.", func(s State) float64 { return float64(s.Seals) })
	add(counter, "weir_state_sealed_entries_total", "Entries in seals.", func(s State) float64 { return float64(s.SealedRows) })
	add(counter, "weir_state_sealed_bytes_total", "Bytes in seals.", func(s State) float64 { return float64(s.Written) })
	add(counter, "weir_state_evicted_entries_total", "Entries that were dropped from memory to make room.", func(s State) float64 { return float64(s.Evicted) })
	add(counter, "weir_state_waits_total", "Times that a task waited for a seal, because nothing could be dropped.", func(s State) float64 { return float64(s.Waits) })
	add(counter, "weir_state_wait_seconds_total", "Time that tasks waited for seals.", func(s State) float64 { return s.Waited.Seconds() })
	return register()
}

// valuesOf returns how to add metrics that are read together, and how to register them.
func valuesOf[T any](reg prometheus.Registerer, read func() T) (add func(kind prometheus.ValueType, name, help string, value func(T) float64), register func() error) {
	c := &collector{}
	var values []func(out chan<- prometheus.Metric, v T)
	add = func(kind prometheus.ValueType, name, help string, value func(T) float64) {
		d := describe(name, help)
		c.descs = append(c.descs, d)
		values = append(values, func(out chan<- prometheus.Metric, v T) {
			out <- prometheus.MustNewConstMetric(d, kind, value(v))
		})
	}
	c.collect = func(out chan<- prometheus.Metric) {
		v := read()
		for _, value := range values {
			value(out, v)
		}
	}
	return add, func() error { return reg.Register(c) }
}
