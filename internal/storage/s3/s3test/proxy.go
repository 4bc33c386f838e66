package s3test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// Fault is what goes wrong with a request; the zero Fault is nothing.
type Fault struct {
	Hold   <-chan struct{} // the server gets the request when it is closed, whether or not somebody still waits for the answer
	Before bool            // the line breaks, and the server never gets the request
	After  bool            // the server does it, and the line breaks before the answer
	Cut    bool            // of the body of the answer the second half is missing
	Status int             // this is the answer, and the server never gets the request; with After it does first
	Code   string          // of the answer with Status
	Strip  string          // a header that the server does not get; it must not be a signed one
}

// Proxy is a line to a server that can be broken. Its address is its own, and so is the host that requests are signed for.
type Proxy struct {
	server *httptest.Server
	target *httputil.ReverseProxy
	mu     struct {
		sync.Mutex
		faults func(r *http.Request) Fault
	}
	held sync.WaitGroup
}

// NewProxy opens a line to a server.
func NewProxy(endpoint string) (*Proxy, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = u.Scheme, u.Host, r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { breakLine(w) },
		Transport:    &http.Transport{},
	}}
	p.server = httptest.NewServer(p)
	return p, nil
}

// Endpoint is the URL of the line.
func (p *Proxy) Endpoint() string { return p.server.URL }

// Close closes the line. Requests that are held must have been let go.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close() // waits for all that may still hold a request
	p.held.Wait()
	p.target.Transport.(*http.Transport).CloseIdleConnections()
}

// SetFaults makes predicate decide the fate of every request; nil: all arrive. It may be called by several goroutines at once.
func (p *Proxy) SetFaults(predicate func(r *http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.faults = predicate
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	faults := p.mu.faults
	p.mu.Unlock()
	var f Fault
	if faults != nil {
		f = faults(r)
	}
	switch {
	case f.Hold != nil:
		p.hold(w, r, f)
	case f.Before:
		breakLine(w)
	case f.After:
		p.target.ServeHTTP(httptest.NewRecorder(), r)
		answer(w, f)
	case f.Status != 0:
		answer(w, f)
	case f.Cut:
		p.cut(w, r)
	default:
		p.target.ServeHTTP(w, r)
	}
}

// hold takes the whole request, breaks the line when nobody waits any more, and passes the request on late.
func (p *Proxy) hold(w http.ResponseWriter, r *http.Request, f Fault) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		breakLine(w)
		return
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(strings.NewReader(string(body)))
	p.held.Go(func() {
		<-f.Hold
		p.target.ServeHTTP(httptest.NewRecorder(), late)
	})
	<-r.Context().Done()
}

func (p *Proxy) cut(w http.ResponseWriter, r *http.Request) {
	rec := httptest.NewRecorder()
	p.target.ServeHTTP(rec, r)
	for key, values := range rec.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2]) // the line breaks anyhow
	breakLine(w)
}

// answer gives the answer of the fault, or none.
func answer(w http.ResponseWriter, f Fault) {
	if f.Status == 0 {
		breakLine(w)
		return
	}
	w.WriteHeader(f.Status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>by the test</Message></Error>", f.Code) // nobody may be there
}

// breakLine resets the connection.
func breakLine(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, out, err := hijacker.Hijack()
	if err != nil {
		return
	}
	_ = out.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
