package jobmaster

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/metrics"
)

var rewriteMetrics = flag.Bool("rewrite", false, "write what the metrics are now into testdata")

// page is what a scrape of a cluster's job master gives.
func page(t *testing.T, c *cluster) func() string {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := metrics.RegisterJobMaster(t.Context(), reg, c.m); err != nil {
		t.Fatal(err)
	}
	handler := promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	return func() string {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
}

// The page of /metrics after a checkpoint, a savepoint, a checkpoint that fails, a lost executor and the restore, while a checkpoint is under way.
func TestMetrics_PageOfAScriptedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, func(cfg *Config) { cfg.SavepointDir = "/sp" })
		defer c.close()
		var takes time.Duration
		var fails error
		executor := script{trigger: func(context.Context) error {
			time.Sleep(takes)
			return fails
		}}
		a := c.start("a", 3, executor)
		id := c.submit(2, onRequestOnly)
		c.expect(id, job.Running)
		scrape := page(t, c)
		trigger := func(duration time.Duration, err error) {
			t.Helper()
			takes, fails = duration, err
			if _, got := c.m.TriggerCheckpoint(t.Context(), id, 0); (got != nil) != (err != nil) {
				t.Fatalf("trigger: %v, want %v", got, err)
			}
		}
		trigger(1500*time.Millisecond, nil)
		if _, err := c.m.TriggerSavepoint(t.Context(), gateway.TriggerSavepoint{Job: id}); err != nil {
			t.Fatal(err)
		}
		trigger(0, errors.New("the executor does not want to"))
		trigger(250*time.Millisecond, nil)
		a.disconnect()
		c.start("b", 2, executor)
		time.Sleep(time.Minute)
		c.expect(id, job.Running)
		takes = time.Second
		asked := make(chan error, 1)
		go func() {
			_, err := c.m.TriggerCheckpoint(t.Context(), id, 0)
			asked <- err
		}()
		synctest.Wait()
		got := scrape()
		if err := <-asked; err != nil {
			t.Error(err)
		}
		golden := filepath.Join("testdata", "metrics.txt")
		if *rewriteMetrics {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("the page has changed; -rewrite writes it (-want +got):\n%s", diff)
		}
	})
}

// What a scrape shows agrees with what the caller has just been told.
func TestMetrics_AreUpdatedBeforeTheCallerHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		id := c.submit(1, onRequestOnly)
		c.expect(id, job.Running)
		scrape := page(t, c)
		for n := range 20 {
			if _, err := c.m.TriggerCheckpoint(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
			series := `weir_checkpoint_completed_total{job_id="job-1",job_name="flights"} `
			_, rest, found := strings.Cut(scrape(), series)
			if value, _, _ := strings.Cut(rest, "\n"); !found || value != strconv.Itoa(n+1) {
				t.Fatalf("after checkpoint %d: %q", n+1, value)
			}
		}
	})
}

// The number of series is bounded: those of a job go when the job master forgets it.
func TestMetrics_SeriesGoWithTheirJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		c.start("a", 1, script{})
		scrape := page(t, c)
		const extra = 5
		for range maxHistory + extra {
			id := c.submit(1, onRequestOnly)
			c.expect(id, job.Running)
			if _, err := c.m.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		running := c.submit(1, onRequestOnly)
		c.expect(running, job.Running)
		got := scrape()
		if n := strings.Count(got, "weir_job_restarts_total{"); n != maxHistory+1 {
			t.Errorf("%d jobs have series, want the %d that ended last and the one that runs", n, maxHistory)
		}
		if strings.Contains(got, `job_id="job-1"`) || !strings.Contains(got, `job_id="`+string(running)+`"`) {
			t.Error("a job that was forgotten has series, or one that runs has none")
		}
		if n := strings.Count(got, "weir_checkpoint_since_last_completed_seconds{"); n != 1 {
			t.Errorf("%d jobs have a time since their latest checkpoint, want the one that runs", n)
		}
	})
}
