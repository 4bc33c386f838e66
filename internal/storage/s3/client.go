package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// What of files is on its way at a time, in all files of a bucket together: that many parts, each in memory as a whole.
const (
	maxPartUploads = 8
	maxPartReads   = 8
)

// Limits of the connections to a server.
const (
	dialTimeout     = 5 * time.Second
	idleTimeout     = time.Minute
	maxConnections  = 64
	maxIdle         = 32
	lineBuffer      = 64 << 10        // bytes, twice for each connection
	identityTimeout = 5 * time.Second // of a request to a service that hands out credentials
)

// Client speaks to one bucket. It may be used by any number of goroutines.
type Client struct {
	bucket    string
	service   Service
	core      *minio.Core
	transport *http.Transport
	stats     *Stats
	uploads   chan struct{} // a token for each part that is being uploaded
	reads     chan struct{} // a token for each part that is being read
	buffers   chan []byte   // of parts that are not used
	unsettled unsettled
	pacing    pacing
}

// NewClient returns a client for the bucket of c. No request is made. Requests are counted in stats.
func NewClient(c Config, stats *Stats) (*Client, error) {
	transport := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, MaxConnsPerHost: maxConnections, IdleConnTimeout: idleTimeout,
		ReadBufferSize: lineBuffer, WriteBufferSize: lineBuffer,
		DisableCompression: true, // an object is what was put there
	}
	lookup := minio.BucketLookupAuto
	switch c.Service.PathStyle {
	case "true":
		lookup = minio.BucketLookupPath
	case "false":
		lookup = minio.BucketLookupDNS
	}
	scheme, host, _ := strings.Cut(c.Service.Endpoint, "://")
	core, err := minio.NewCore(host, &minio.Options{
		Creds: credentials.New(newProvider(c.Service.Profile)), Secure: scheme == "https", Region: c.Service.Region,
		Transport: transport, BucketLookup: lookup, MaxRetries: 1, // call tries again
	})
	if err != nil {
		return nil, err
	}
	out := &Client{
		bucket: c.Bucket, service: c.Service, core: core, transport: transport, stats: stats,
		uploads: make(chan struct{}, maxPartUploads), reads: make(chan struct{}, maxPartReads), buffers: make(chan []byte, maxPartUploads),
		pacing: pacing{min: minPause, max: maxPause, try: tryTime, settle: settleTime},
	}
	out.unsettled.init()
	return out, nil
}

// Close closes the connections that are not used.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// In returns the storage below a prefix of the bucket.
func (c *Client) In(prefix string) *Storage {
	if prefix != "" {
		prefix += "/"
	}
	return &Storage{client: c, prefix: prefix}
}

// provider finds credentials where Amazon's own tools do: in the environment, in the shared files, and at the service that the machine or the container
// gets its identity from.
type provider struct{ credentials.Chain }

var errNoCredentials = errors.New("no credentials are found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a shared credentials file or the identity of the machine")

func newProvider(profile string) *provider {
	chain := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{Profile: profile},
		&credentials.IAM{Client: &http.Client{Timeout: identityTimeout, Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, DisableKeepAlives: true}}}}
	if profile != "" { // whoever names one means it
		chain = chain[1:]
	}
	return &provider{credentials.Chain{Providers: chain}}
}

// Retrieve implements credentials.Provider.
func (p *provider) Retrieve() (credentials.Value, error) { return found(p.Chain.Retrieve()) }

// RetrieveWithCredContext implements credentials.Provider.
func (p *provider) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	return found(p.Chain.RetrieveWithCredContext(cc))
}

// found makes an error of nothing, which the chain takes for a wish to be nobody.
func found(v credentials.Value, err error) (credentials.Value, error) {
	if err == nil && v.AccessKeyID == "" {
		err = errNoCredentials
	}
	return v, err
}

// take takes a token, or gives the reason why ctx has ended.
func take(ctx context.Context, tokens chan struct{}) error {
	select {
	case tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
