package inspect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		write(t, file, []byte(got))
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-rewrite writes it anew):\n%s", file, diff)
	}
}

func TestReport_Golden(t *testing.T) {
	md, _ := sample()
	r := NewReport(md)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d of %s (%s) at %s, %d bytes in %d files, fingerprint %s, epoch %d\n",
		r.Kind, r.ID, r.Job, r.JobName, r.Triggered, r.Bytes, r.Files, r.Fingerprint, r.Epoch)
	for _, v := range r.Vertices {
		fmt.Fprintf(&b, "vertex %s: parallelism %d of %d, %d ended, %d bytes\n", v.Vertex, v.Parallelism, v.MaxParallelism, v.Ended, v.Bytes)
		for _, op := range v.Operators {
			fmt.Fprintf(&b, "  operator %s (%s): %d items, %d bytes, states %v\n", op.Operator.ID, op.Operator.Kind, op.Items, op.Bytes, op.States)
			for _, s := range op.Subtasks {
				fmt.Fprintf(&b, "    subtask %d: %d items, key groups %s, %d bytes, files %q\n", s.Subtask, s.Items, s.KeyGroups, s.Bytes, s.Files)
			}
		}
	}
	golden(t, "report.txt", b.String())
}
