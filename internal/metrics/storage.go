package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests are what a process has asked of object stores since it was started.
type Requests struct {
	Operations   []Operation
	BytesRead    int64
	BytesWritten int64
}

// Operation is a kind of request to an object store.
type Operation struct {
	Name   string
	Tries  int64
	Failed int64 // tries
	Again  int64 // tries that were not the first of their request
	Time   time.Duration
}

// RegisterStorage registers the metrics of the requests to object stores.
func RegisterStorage(reg prometheus.Registerer, read func() Requests) error {
	c := &collector{}
	type ofOperation struct {
		desc  *prometheus.Desc
		value func(o Operation) float64
	}
	var operations []ofOperation
	add := func(name, help string, value func(o Operation) float64) {
		d := describe(name, help, "operation")
		c.descs, operations = append(c.descs, d), append(operations, ofOperation{d, value})
	}
	add("weir_storage_requests_total", "Requests to the object store; each try counts.", func(o Operation) float64 { return float64(o.Tries) })
	add("weir_storage_requests_failed_total", "Requests to the object store that have failed.", func(o Operation) float64 { return float64(o.Failed) })
	add("weir_storage_retries_total", "Requests to the object store that were made again.", func(o Operation) float64 { return float64(o.Again) })
	add("weir_storage_request_seconds_total", "Time that these requests took, all together.", func(o Operation) float64 { return o.Time.Seconds() })
	in := describe("weir_storage_read_bytes_total", "Content that was read from the object store.")
	out := describe("weir_storage_written_bytes_total", "Content that was written to the object store.")
	c.descs = append(c.descs, in, out)
	c.collect = func(ch chan<- prometheus.Metric) {
		r := read()
		for _, o := range r.Operations {
			for _, m := range operations {
				ch <- prometheus.MustNewConstMetric(m.desc, counter, m.value(o), label(o.Name))
			}
		}
		ch <- prometheus.MustNewConstMetric(in, counter, float64(r.BytesRead))
		ch <- prometheus.MustNewConstMetric(out, counter, float64(r.BytesWritten))
	}
	return reg.Register(c)
}
