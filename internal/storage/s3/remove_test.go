package s3_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/s3"
	"github.com/weirstream/weir/internal/storage/s3/s3test"
)

// More files than one request can list or delete, by both ways to delete.
func TestRemoveAll_OfManyFiles_AndOfWhatIsNotFinished(t *testing.T) {
	isBatch := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("delete") }
	for name, faults := range map[string]func(*http.Request) s3test.Fault{
		"at once":                  nil,
		"over a broken line":       times(1, isBatch, s3test.Fault{After: true}),
		"the store knows no batch": times(1000, isBatch, s3test.Fault{Status: 501, Code: "NotImplemented"}),
	} {
		t.Run(name, func(t *testing.T) {
			behind, direct, _ := line(t, faults)
			n := 20
			if faults == nil {
				n = 1005
			}
			var g errgroup.Group
			g.SetLimit(16)
			for i := range n {
				g.Go(func() error {
					return direct.WriteFile(t.Context(), fmt.Sprintf("j/chk-1/%d.state", i), nil, storage.Replace)
				})
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			if list, err := behind.List(t.Context(), "j"); err != nil || len(list) != n {
				t.Fatalf("%d files are listed, %v", len(list), err)
			}
			for _, name := range []string{"j/chk-1/a", "j/chk-1/b", "j/chk-10/a"} {
				leaveUpload(t, direct, name)
			}
			if err := behind.RemoveAll(t.Context(), "j/chk-1"); err != nil {
				t.Fatal(err)
			}
			if list, err := direct.List(t.Context(), ""); err != nil || len(list) > 0 {
				t.Errorf("%d files are left, %v", len(list), err)
			}
			left, err := direct.Leftovers(t.Context())
			if err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Path, "j/chk-10/.tmp~a-") {
				t.Errorf("uploads of others: %v, %v", left, err)
			}
		})
	}
}

// leaveUpload begins a file of more than one part, and leaves it as a process does that is killed.
func leaveUpload(t *testing.T, s *s3.Storage, name string) {
	t.Helper()
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(big()); err != nil {
		t.Fatal(err)
	}
	s3.AwaitParts(w)
}

// What is not finished is found, with the time when it was begun, and can be removed; a file of the same name stays.
func TestLeftovers_AreFoundAndRemoved(t *testing.T) {
	s := open(t, server.Endpoint())
	begin := time.Now().Add(-time.Minute)
	if err := s.WriteFile(t.Context(), "j/chk-1/f", []byte("x"), storage.Replace); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		leaveUpload(t, s, "j/chk-1/f")
	}
	list, err := s.Leftovers(t.Context())
	if err != nil || len(list) != 2 || list[0].Path == list[1].Path {
		t.Fatalf("%v, %v", list, err)
	}
	for i, o := range slices.Repeat(list, 2) { // a second time it is gone
		if o.ModTime.Before(begin) || o.ModTime.After(time.Now().Add(time.Minute)) || o.Dir {
			t.Errorf("%d: %+v", i, o)
		}
		if err := s.RemoveLeftover(t.Context(), o); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if list, err := s.Leftovers(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	want(t, s, "j/chk-1/f", "x")
}
