package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector reads metrics when they are scraped.
type collector struct {
	descs   []*prometheus.Desc
	collect func(out chan<- prometheus.Metric)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) { c.collect(out) }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// label makes a text fit to be the value of a label.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
