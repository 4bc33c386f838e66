package ha

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/job"
)

// golden holds a file of each kind as version 1 was released; they must stay readable.
func golden() map[string]struct {
	kind  kind
	value any
	empty any
} {
	type entry = struct {
		kind  kind
		value any
		empty any
	}
	j := testJob("a", 1)
	j.Graph.Edges = []job.Edge{{ID: "a->b", From: "a", To: "b", Partitioning: job.Hash}}
	j.Graph.Vertices[0].Operators = []job.Operator{{ID: "a", Kind: "source", Signature: "x", States: []string{"s"}, Stateful: true}}
	return map[string]entry{
		"epoch":    {kindEpoch, &epochRecord{7}, &epochRecord{}},
		"job":      {kindJob, &j, &Job{}},
		"progress": {kindProgress, &Progress{Attempt: 3, Reserved: 200, Completed: 17}, &Progress{}},
		"plan":     {kindPlan, &Plan{Parallelism: 3, OperatorParallelism: map[string]int{"a": 2}, Graph: j.Graph}, &Plan{}},
		"end":      {kindEnd, &End{State: job.Finished, At: j.Submitted, DeleteAll: true, Clean: true, Completed: 2}, &End{}},
	}
}

func TestGolden_VersionOneStaysReadable(t *testing.T) {
	for name, c := range golden() {
		file := filepath.Join("testdata", "v1", name)
		if os.Getenv("WEIR_REWRITE") != "" {
			data, err := encode(c.kind, c.value)
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must(t, os.WriteFile(file, data, 0o644))
		}
		data, err := os.ReadFile(file)
		must(t, err)
		must(t, decode(data, c.kind, c.empty))
		if diff := cmp.Diff(c.value, c.empty); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDecode_OfANewerBuild_IsRefused(t *testing.T) {
	later, err := encode(kindProgress, struct{ Attempt, Later int }{1, 2})
	must(t, err)
	if err := decode(later, kindProgress, &Progress{}); err == nil || !strings.Contains(err.Error(), "Later") {
		t.Errorf("a field that is not known: %v", err)
	}
	data, err := encode(kindProgress, Progress{})
	must(t, err)
	data[len(magic)] = 2
	if err := decode(data, kindProgress, &Progress{}); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a version that is not known: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range golden() {
		data, err := encode(c.kind, c.value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, byte(c.kind))
	}
	f.Fuzz(func(t *testing.T, data []byte, k byte) {
		for _, body := range [][]byte{data, seal(data, k)} {
			var j Job
			if decode(body, kind(k), &j) != nil {
				continue
			}
			again, err := encode(kind(k), j)
			must(t, err)
			var same Job
			must(t, decode(again, kind(k), &same))
			if diff := cmp.Diff(j, same); diff != "" {
				t.Errorf("decoded and encoded again (-want +got):\n%s", diff)
			}
		}
	})
}

// seal puts a header with the right checksum ahead of a body, so that the fuzzer gets behind it.
func seal(body []byte, k byte) []byte {
	b := append([]byte(magic), version, k, 0, 0, 0, 0)
	c := sum(b, body)
	b[headerBytes-4], b[headerBytes-3], b[headerBytes-2], b[headerBytes-1] = byte(c>>24), byte(c>>16), byte(c>>8), byte(c)
	return append(b, body...)
}
