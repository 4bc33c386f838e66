package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// line opens a storage behind a line that can be broken, and the same one by another way.
func line(t *testing.T, faults func(r *http.Request) s3test.Fault) (behind, direct *s3.Storage, p *s3test.Proxy) {
	t.Helper()
	p, err := s3test.NewProxy(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.SetFaults(faults)
	prefix := newPrefix()
	return openAt(t, p.Endpoint(), prefix, &s3.Stats{}), openAt(t, server.Endpoint(), prefix, &s3.Stats{}), p
}

// times gives the fault to the first n requests that are meant.
func times(n int, meant func(r *http.Request) bool, f s3test.Fault) func(r *http.Request) s3test.Fault {
	var seen atomic.Int64
	return func(r *http.Request) s3test.Fault {
		if meant(r) && seen.Add(1) <= int64(n) {
			return f
		}
		return s3test.Fault{}
	}
}

// Requests, as a test means them.
func isPut(r *http.Request) bool {
	return r.Method == http.MethodPut && !r.URL.Query().Has("partNumber")
}
func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}
func isComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}
func isGet(r *http.Request) bool {
	return r.Method == http.MethodGet && !r.URL.Query().Has("list-type")
}
func isDelete(r *http.Request) bool { return r.Method == http.MethodDelete }
func always(*http.Request) bool     { return true }

var lineFaults = map[string]s3test.Fault{
	"broken before": {Before: true}, "broken after": {After: true}, "busy": {Status: 503, Code: "SlowDown"},
	"internal error": {Status: 500, Code: "InternalError"}, "internal error after": {After: true, Status: 500, Code: "InternalError"},
	"gateway error": {Status: 502, Code: ""}, "conflict": {Status: 409, Code: "ConditionalRequestConflict"},
}

const metadata = "j/chk-1/_metadata"

// Tests named TestFault_Bn_ are those of the table in docs/faults.md.

// The metadata is put, and the answer is lost: the second try finds it, and it is not taken for that of another.
func TestFault_B94_PutAppliedAndAnswerLost_IsSuccess(t *testing.T) {
	for name, fault := range lineFaults {
		for _, n := range []int{1, s3.MaxTries - 1} {
			t.Run(fmt.Sprintf("%s %d times", name, n), func(t *testing.T) {
				behind, direct, _ := line(t, times(n, isPut, fault))
				if err := behind.WriteFile(t.Context(), metadata, []byte("content"), storage.CreateOnly); err != nil {
					t.Fatalf("the data would be discarded: %v", err)
				}
				want(t, direct, metadata, "content")
			})
		}
	}
}

// The same, and in between another has created the file: that is a conflict.
func TestPut_AnswerLost_AndAnotherWasFirst_IsErrExists(t *testing.T) {
	for _, content := range []string{"another", "content and more", ""} {
		behind, direct, _ := line(t, times(1, isPut, s3test.Fault{Before: true}))
		if err := direct.WriteFile(t.Context(), metadata, []byte(content), storage.CreateOnly); err != nil {
			t.Fatal(err)
		}
		err := behind.WriteFile(t.Context(), metadata, []byte("content"), storage.CreateOnly)
		if !errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrUncertain) {
			t.Errorf("%q was there: %v", content, err)
		}
		want(t, direct, metadata, content)
	}
}

// The line stays broken after the metadata was put. Nobody may say that it is not there: its files would be deleted.
func TestFault_B93_MetadataPutAndLineGone_IsUncertain(t *testing.T) {
	for name, fault := range lineFaults {
		t.Run(name, func(t *testing.T) {
			behind, direct, p := line(t, times(1000, always, fault))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := storage.Publish(ctx, behind, metadata, []byte("content"))
			if err == nil {
				t.Fatal("there is no line, and yet no error")
			}
			p.SetFaults(nil)
			_, found := direct.Stat(t.Context(), metadata)
			if found == nil && !errors.Is(err, storage.ErrUncertain) {
				t.Errorf("it is there, and the error says that it is not: %v", err)
			}
			if err := storage.Publish(t.Context(), behind, metadata, []byte("content")); err != nil {
				t.Errorf("when the line is back: %v", err)
			}
		})
	}
}

// Whatever happens to whatever request, what Publish says is true: nil, and it is there; an error that is not ErrUncertain, and it is not.
func TestPublish_OverALineThatBreaksAtRandom_SaysWhatIsTrue(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	kinds := []s3test.Fault{{Before: true}, {After: true}, {Status: 503, Code: "SlowDown"}, {After: true, Status: 500, Code: "InternalError"}, {Cut: true}}
	behind, direct, p := line(t, nil)
	outcomes := map[string]int{}
	for round := range 30 {
		name := fmt.Sprintf("j/chk-%d/_metadata", round)
		odds := []float64{0.3, 0.7, 0.95, 1}[rng.IntN(4)]
		p.SetFaults(func(*http.Request) s3test.Fault {
			mu.Lock()
			defer mu.Unlock()
			if rng.Float64() < odds {
				return kinds[rng.IntN(len(kinds))]
			}
			return s3test.Fault{}
		})
		err := storage.Publish(t.Context(), behind, name, []byte(name))
		_, found := direct.Stat(t.Context(), name)
		switch {
		case err == nil:
			outcomes["published"]++
			want(t, direct, name, name)
		case errors.Is(err, storage.ErrUncertain):
			outcomes["uncertain"]++
		default:
			outcomes["not published"]++
			if !errors.Is(found, storage.ErrNotFound) {
				t.Errorf("round %d: %v, and there is %v", round, err, found)
			}
		}
		p.SetFaults(nil)
		if err := storage.DiscardCheckpoint(t.Context(), behind, fmt.Sprintf("j/chk-%d", round)); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(outcomes)
	nothing(t, direct)
}

// A request of which no answer came arrives at the store when the call is long over. Whoever removes the file waits for it.
func TestRemove_OfAFileThatArrivesLate_IsForGood(t *testing.T) {
	for name, remove := range map[string]func(s *s3.Storage) error{
		"remove":     func(s *s3.Storage) error { return s.Remove(t.Context(), metadata) },
		"remove all": func(s *s3.Storage) error { return s.RemoveAll(t.Context(), "j/chk-1") },
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			behind, direct, _ := line(t, times(1000, isPut, s3test.Fault{Hold: release}))
			behind.SetSettle(2 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := behind.WriteFile(ctx, metadata, []byte("content"), storage.CreateOnly)
			if !errors.Is(err, storage.ErrUncertain) {
				t.Fatalf("nobody knows whether it is there, but the error is %v", err)
			}
			close(release)
			if err := remove(behind); err != nil {
				t.Fatal(err)
			}
			nothing(t, direct)
		})
	}
}

// Several create the same file at once over lines that break: one succeeds, and it is that one's file.
func TestCreateOnly_OverBrokenLines_HasOneWinner(t *testing.T) {
	prefix := newPrefix()
	direct := openAt(t, server.Endpoint(), prefix, &s3.Stats{})
	const n = 6
	var writers []*s3.Storage
	for i := range n {
		p, err := s3test.NewProxy(server.Endpoint())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		var calls atomic.Int64
		p.SetFaults(func(*http.Request) s3test.Fault { return s3test.Fault{After: calls.Add(1)%2 == int64(i%2)} })
		writers = append(writers, openAt(t, p.Endpoint(), prefix, &s3.Stats{}))
	}
	for round := range 10 {
		name := fmt.Sprintf("r%d/_metadata", round)
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i, s := range writers {
			wg.Go(func() { errs[i] = s.WriteFile(t.Context(), name, []byte(strings.Repeat("x", 1+i)), storage.CreateOnly) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil && winner >= 0 {
				t.Fatalf("%d and %d have both created the file", winner, i)
			}
			if err == nil {
				winner = i
			} else if !errors.Is(err, storage.ErrExists) {
				t.Errorf("loser: %v", err)
			}
		}
		if winner < 0 {
			t.Fatal("nobody has created the file")
		}
		want(t, direct, name, strings.Repeat("x", 1+winner))
	}
}

// big is more than three parts of the smallest size.
func big() []byte {
	data := make([]byte, 16<<20+12345)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data) // never fails
	return data
}

// A file in parts is whole, whatever request is lost once.
func TestWriter_InParts_OverABrokenLine_IsExact(t *testing.T) {
	data := big()
	begin := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploads") }
	for what, meant := range map[string]func(*http.Request) bool{"begin": begin, "part": isPart, "complete": isComplete} {
		for name, fault := range lineFaults {
			t.Run(what+" "+name, func(t *testing.T) {
				behind, direct, _ := line(t, times(2, meant, fault))
				writeBig(t, behind, "j/chk-1/s.state", data)
				wantBytes(t, direct, "j/chk-1/s.state", data)
				if what == "begin" { // the upload whose begin was not heard of is there until it is swept
					return
				}
				if list, err := direct.Leftovers(t.Context()); err != nil || len(list) > 0 {
					t.Errorf("left behind: %v, %v", list, err)
				}
			})
		}
	}
}

func writeBig(t *testing.T, s *s3.Storage, name string, data []byte) {
	t.Helper()
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for chunk := range slices.Chunk(data, 1<<20+7) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

// Some stores say at the second complete that there is no such upload. The object tells whether the first has done it.
func TestWriter_CompletedAndAnswerLost_OnAStoreThatForgetsUploads(t *testing.T) {
	for _, c := range []struct {
		name  string
		first s3test.Fault
		fails bool
	}{{"it was done", s3test.Fault{After: true}, false}, {"it was not done", s3test.Fault{Before: true}, true}} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int64
			behind, direct, _ := line(t, func(r *http.Request) s3test.Fault {
				if !isComplete(r) {
					return s3test.Fault{}
				}
				if calls.Add(1) == 1 {
					return c.first
				}
				return s3test.Fault{Status: 404, Code: "NoSuchUpload"}
			})
			w, err := behind.Create(t.Context(), "f")
			if err != nil {
				t.Fatal(err)
			}
			data := big()
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			err = w.Commit()
			if (err != nil) != c.fails {
				t.Errorf("commit: %v", err)
			}
			if err == nil {
				wantBytes(t, direct, "f", data)
			} else {
				nothing(t, direct)
			}
		})
	}
}

// A file that is not finished leaves nothing, however it ends.
func TestWriter_ThatDoesNotCommit_LeavesNothing(t *testing.T) {
	data := big()
	canceled := errors.New("checkpoint aborted")
	for name, end := range map[string]func(p *s3test.Proxy, w storage.Writer, cancel context.CancelCauseFunc) error{
		"abort": func(_ *s3test.Proxy, w storage.Writer, _ context.CancelCauseFunc) error {
			w.Abort()
			return canceled
		},
		"canceled": func(_ *s3test.Proxy, w storage.Writer, cancel context.CancelCauseFunc) error {
			cancel(canceled)
			return w.Commit()
		},
		"a part fails": func(p *s3test.Proxy, w storage.Writer, _ context.CancelCauseFunc) error {
			p.SetFaults(times(1000, isPart, s3test.Fault{Status: 403, Code: "AccessDenied"}))
			if err := w.Commit(); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
				return err
			}
			return canceled
		},
	} {
		t.Run(name, func(t *testing.T) {
			behind, direct, p := line(t, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w, err := behind.Create(ctx, "d/f")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := end(p, w, cancel); !errors.Is(err, canceled) {
				t.Errorf("the end: %v", err)
			}
			w.Abort()
			nothing(t, direct)
		})
	}
}

// A store that asks for patience gets it, and one that is gone is called that.
func TestCall_TriesAgainAsOftenAsItShould(t *testing.T) {
	stats := &s3.Stats{}
	p, err := s3test.NewProxy(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s := openAt(t, p.Endpoint(), newPrefix(), stats)
	p.SetFaults(times(2, isPut, s3test.Fault{Status: 503, Code: "SlowDown"}))
	if err := s.WriteFile(t.Context(), "f", []byte("x"), storage.Replace); err != nil {
		t.Fatal(err)
	}
	if c := stats.Read(); c.Operations[s3.OpPut].Tries != 3 || c.Operations[s3.OpPut].Failed != 2 || c.Operations[s3.OpPut].Again != 2 || c.BytesWritten != 1 {
		t.Errorf("counted: %+v", c)
	}
	p.SetFaults(times(1000, always, s3test.Fault{Before: true}))
	if _, err := s.Stat(t.Context(), "f"); !errors.Is(err, storage.ErrUnreachable) {
		t.Errorf("a line that is gone: %v", err)
	}
	if c := stats.Read(); c.Operations[s3.OpHead].Tries != s3.MaxTries {
		t.Errorf("tried %d times", c.Operations[s3.OpHead].Tries)
	}
	p.SetFaults(times(1000, always, s3test.Fault{Status: 403, Code: "AccessDenied"}))
	if _, err := s.ReadFile(t.Context(), "f", 10); err == nil || errors.Is(err, storage.ErrUnreachable) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("no rights: %v", err)
	}
	if c := stats.Read(); c.Operations[s3.OpGet].Tries != 1 {
		t.Errorf("what cannot help was tried %d times", c.Operations[s3.OpGet].Tries)
	}
}

// A store that does not answer costs no more than the time of a try.
func TestCall_WithoutAnAnswer_EndsWithItsTime(t *testing.T) {
	release := make(chan struct{})
	behind, _, _ := line(t, times(1, isGet, s3test.Fault{Hold: release}))
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("too slow"))
	defer cancel()
	if _, err := behind.ReadFile(ctx, "f", 10); err == nil || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("%v", err)
	}
}

func TestTry_SaysWhatIsWrong(t *testing.T) {
	conditional := func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" }
	for _, c := range []struct {
		name   string
		faults func(r *http.Request) s3test.Fault
		want   string
	}{
		{"conditions are ignored", times(1000, conditional, s3test.Fault{Status: 200}), "the object store does not know conditional writes"},
		{"conditions are refused", times(1000, conditional, s3test.Fault{Status: 501, Code: "NotImplemented"}), "the object store does not know conditional writes"},
		{"read only", times(1000, isPut, s3test.Fault{Status: 403, Code: "AccessDenied"}), "write a file: AccessDenied: by the test (status 403); let these credentials list, read, write and delete"},
		{"no deletion", times(1000, isDelete, s3test.Fault{Status: 403, Code: "AccessDenied"}), "remove a file: AccessDenied"},
		{"no bucket", times(1000, always, s3test.Fault{Status: 404, Code: "NoSuchBucket"}), "list files: NoSuchBucket: by the test (status 404); make the bucket, or name another"},
		{"nobody there", times(1000, always, s3test.Fault{Before: true}), "list files: the storage cannot be reached: tried 5 times: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind, direct, _ := line(t, c.faults)
			err := behind.Try(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v", err)
			}
			if c.name != "no deletion" {
				nothing(t, direct)
			}
		})
	}
}

// The secret is in no error, and neither is the key.
func TestErrors_HaveNoCredentials(t *testing.T) {
	const secret = "not-the-secret-of-the-server"
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	s := open(t, server.Endpoint())
	err := s.Try(t.Context())
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "check the credentials of this process") {
		t.Errorf("%v", err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	t.Setenv("AWS_CONFIG_FILE", "/nowhere")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	s = open(t, server.Endpoint())
	if err := s.Try(t.Context()); err == nil || !strings.Contains(err.Error(), "no credentials are found; set AWS_ACCESS_KEY_ID") {
		t.Errorf("%v", err)
	}
}

func want(t *testing.T, s *s3.Storage, name, content string) {
	t.Helper()
	wantBytes(t, s, name, []byte(content))
}

func wantBytes(t *testing.T, s *s3.Storage, name string, content []byte) {
	t.Helper()
	got, err := s.ReadFile(t.Context(), name, 64<<20)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%s has %d bytes (%v), want %d", name, len(got), err, len(content))
	}
}

// nothing wants neither an object nor an upload.
func nothing(t *testing.T, s *s3.Storage) {
	t.Helper()
	files, err := s.List(t.Context(), "")
	if err != nil || len(files) > 0 {
		t.Errorf("there are %v, %v", files, err)
	}
	if list, err := s.Leftovers(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
