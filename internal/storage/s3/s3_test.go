package s3_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"go.uber.org/goleak"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

const bucket = "weir"

var server *s3test.Server

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "weir-s3-")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if server, err = s3test.Start(context.Background(), dir, bucket); err != nil {
			panic(err)
		}
		minio.DefaultRetryUnit = time.Millisecond            // a pause of its own behind every request that fails
		_ = os.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey) // what the client reads; an error shows at the first request
		_ = os.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
		code := m.Run()
		server.Stop()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

var prefixes atomic.Int64

// newPrefix is one that no other test uses.
func newPrefix() string { return fmt.Sprintf("t%d", prefixes.Add(1)) }

// open opens a storage of its own.
func open(t testing.TB, endpoint string) *s3.Storage {
	t.Helper()
	return openAt(t, endpoint, newPrefix(), &s3.Stats{})
}

func openAt(t testing.TB, endpoint, prefix string, stats *s3.Stats) *s3.Storage {
	t.Helper()
	config, err := s3.Parse(fmt.Sprintf("s3://%s/%s?part-size-mib=5&endpoint=%s", bucket, prefix, endpoint), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	c, err := s3.NewClient(config, stats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Hurry(5*time.Second, 100*time.Millisecond)
	return c.In(config.Prefix)
}

func TestStorage_KeepsTheContract(t *testing.T) {
	storagetest.RunObjects(t, func(t *testing.T) storage.Storage { return open(t, server.Endpoint()) })
}

func TestTry_OnAStoreThatCanDoAll_LeavesNothing(t *testing.T) {
	s := open(t, server.Endpoint())
	if err := s.Try(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Leftovers(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}
