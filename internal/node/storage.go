package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirstream/weir/internal/metrics"
	"github.com/weirstream/weir/internal/storage/schemes"
)

// measureStorage registers the metrics of the requests to object stores.
func measureStorage(reg prometheus.Registerer, opener *schemes.Opener) error {
	return metrics.RegisterStorage(reg, func() metrics.Requests {
		counts := opener.Requests()
		out := metrics.Requests{BytesRead: counts.BytesRead, BytesWritten: counts.BytesWritten}
		for _, c := range counts.Operations {
			out.Operations = append(out.Operations, metrics.Operation{
				Name: c.Operation.String(), Tries: c.Tries, Failed: c.Failed, Again: c.Again, Time: c.Time,
			})
		}
		return out
	})
}
