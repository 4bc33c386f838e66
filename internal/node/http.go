package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/metrics"
)

// HTTPConfig is what a process serves over HTTP: /metrics, /healthz, /readyz.
type HTTPConfig struct {
	Listen    string // host:port; empty: nothing is served
	Profiling bool   // /debug/pprof too
	// Ready, when not nil, is called once with the address that the server listens on.
	Ready func(address string)
}

// The limits of the HTTP server. Answers are small and made at once, but for a profile, which lasts as long as it is asked for.
const (
	httpHeaderTimeout = 5 * time.Second
	httpReadTimeout   = 10 * time.Second
	httpWriteTimeout  = 10 * time.Second
	profilingTimeout  = 5 * time.Minute
	httpIdleTimeout   = time.Minute
	httpHeaderBytes   = 16 << 10
	httpStopGrace     = 2 * time.Second
	maxScrapes        = 4 // at a time
)

// httpServer is the HTTP server of a process; nil: it has none.
type httpServer struct {
	lis    net.Listener
	server *http.Server
	log    *zap.Logger
}

// process is what the HTTP server tells of its process.
type process struct {
	measure func(prometheus.Registerer) error // registers the metrics
	ready   func(context.Context) error       // why it cannot do its work; nil: it can
}

// newHTTPServer opens the listener.
func newHTTPServer(cfg HTTPConfig, log *zap.Logger, p process) (*httpServer, error) {
	if cfg.Listen == "" {
		return nil, nil
	}
	registry := prometheus.NewRegistry()
	if err := errors.Join(
		registry.Register(collectors.NewGoCollector()), registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		metrics.RegisterBuild(registry, Version()), p.measure(registry),
	); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	lis, err := listen(cfg.Listen, "http")
	if err != nil {
		return nil, err
	}
	if cfg.Ready != nil {
		cfg.Ready(lis.Addr().String())
	}
	write := httpWriteTimeout
	if cfg.Profiling {
		write = profilingTimeout
	}
	return &httpServer{lis, &http.Server{
		Handler:           httpHandler(registry, log, p.ready, cfg.Profiling),
		ReadHeaderTimeout: httpHeaderTimeout, ReadTimeout: httpReadTimeout, WriteTimeout: write, IdleTimeout: httpIdleTimeout,
		MaxHeaderBytes: httpHeaderBytes, ErrorLog: zap.NewStdLog(log.Named("http")),
	}, log}, nil
}

// run serves in a group until its context ends.
func (s *httpServer) run(ctx context.Context, g *errgroup.Group) {
	if s == nil {
		return
	}
	s.log.Info("serves HTTP", zap.String("listen", s.lis.Addr().String()))
	g.Go(func() error { return s.serve(ctx) })
}

func (s *httpServer) serve(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(s.lis) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve HTTP on %s: %w", s.lis.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStopGrace)
	defer cancel()
	if err := s.server.Shutdown(stop); err != nil {
		_ = s.server.Close() // a profile is under way: nobody waits for it
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", s.lis.Addr(), err)
	}
	return nil
}

func httpHandler(registry *prometheus.Registry, log *zap.Logger, ready func(context.Context) error, profiling bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: zap.NewStdLog(log.Named("metrics")), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: maxScrapes, Timeout: httpWriteTimeout,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r.Context()); err != nil {
			answerText(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answerText(w, http.StatusOK, "ok")
	})
	if profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

func answerText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // who does not read it does not want it
}
