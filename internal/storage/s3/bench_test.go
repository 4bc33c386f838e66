package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// raw is the client that is below the storage, as its documentation uses it.
func raw(b *testing.B) *minio.Client {
	b.Helper()
	c, err := minio.New(strings.TrimPrefix(server.Endpoint(), "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(s3test.AccessKey, s3test.SecretKey, ""), Region: "us-east-1",
	})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

const inFlight = 50

// The first of two is the storage, the other minio-go alone.
func BenchmarkPutSmall(b *testing.B) {
	data := make([]byte, 1<<10)
	small := func(b *testing.B, put func(ctx context.Context, name string) error) {
		for _, n := range []int{1, inFlight} {
			b.Run(fmt.Sprintf("%d in flight", n), func(b *testing.B) {
				var i atomic.Int64
				b.SetParallelism(n)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := put(b.Context(), fmt.Sprint("o", i.Add(1))); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
			})
		}
	}
	b.Run("weir", func(b *testing.B) {
		s := open(b, server.Endpoint())
		small(b, func(ctx context.Context, name string) error { return s.WriteFile(ctx, name, data, storage.Replace) })
	})
	b.Run("weir, only if absent", func(b *testing.B) {
		s := open(b, server.Endpoint())
		var n atomic.Int64 // each name once, whatever the number of the run
		small(b, func(ctx context.Context, _ string) error {
			return s.WriteFile(ctx, fmt.Sprint("c", n.Add(1)), data, storage.CreateOnly)
		})
	})
	b.Run("minio-go", func(b *testing.B) {
		c, prefix := raw(b), newPrefix()
		small(b, func(ctx context.Context, name string) error {
			_, err := c.PutObject(ctx, bucket, prefix+"/"+name, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{})
			return err
		})
	})
}

const bigBytes = 64 << 20

func BenchmarkPutBig(b *testing.B) {
	data := make([]byte, bigBytes)
	b.Run("weir", func(b *testing.B) {
		s := open(b, server.Endpoint())
		b.SetBytes(bigBytes)
		for b.Loop() {
			w, err := s.Create(b.Context(), "f")
			if err != nil {
				b.Fatal(err)
			}
			for at := 0; at < len(data); at += 1 << 20 {
				if _, err := w.Write(data[at : at+1<<20]); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("minio-go", func(b *testing.B) {
		c, key := raw(b), newPrefix()+"/f"
		b.SetBytes(bigBytes)
		for b.Loop() {
			if _, err := c.PutObject(b.Context(), bucket, key, bytes.NewReader(data), bigBytes, minio.PutObjectOptions{PartSize: 8 << 20}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkGetBig(b *testing.B) {
	prefix := newPrefix()
	s := openAt(b, server.Endpoint(), prefix, &s3.Stats{})
	if err := s.WriteFile(b.Context(), "f", make([]byte, bigBytes), storage.Replace); err != nil {
		b.Fatal(err)
	}
	into := make([]byte, bigBytes)
	b.Run("weir, in one piece", func(b *testing.B) {
		b.SetBytes(bigBytes)
		for b.Loop() {
			f, err := s.Open(b.Context(), "f")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := f.ReadAt(into, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("weir, in order", func(b *testing.B) {
		b.SetBytes(bigBytes)
		for b.Loop() {
			f, err := s.Open(b.Context(), "f")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.NewSectionReader(f, 0, f.Size()), into[:32<<10]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("minio-go", func(b *testing.B) {
		c := raw(b)
		b.SetBytes(bigBytes)
		for b.Loop() {
			o, err := c.GetObject(b.Context(), bucket, prefix+"/f", minio.GetObjectOptions{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(o, into); err != nil {
				b.Fatal(err)
			}
			_ = o.Close() // it was only read
		}
	})
}
