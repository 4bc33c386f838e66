package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirstream/weir/internal/job"
)

// fingerprint digests everything that two builds of a job must agree on.
func fingerprint(g *job.Graph) string {
	h := sha256.New()
	fmt.Fprintf(h, "job %q\n", g.Name)
	for _, name := range slices.Sorted(maps.Keys(g.Params)) {
		fmt.Fprintf(h, "param %q=%q\n", name, g.Params[name])
	}
	for _, v := range g.Vertices {
		fmt.Fprintf(h, "vertex %q %d %d\n", v.ID, v.Parallelism, v.MaxParallelism)
		for _, op := range v.Operators {
			fmt.Fprintln(h, describe(op))
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(h, "edge %q %q %q %s\n", e.ID, e.From, e.To, e.Partitioning)
	}
	for _, id := range g.MasterHooks {
		fmt.Fprintf(h, "master hook %q\n", id)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func describe(op job.Operator) string {
	return fmt.Sprintf("operator %q kind %q signature %q states %q", op.ID, op.Kind, op.Signature, op.States)
}

// Diff says in words where two graphs of one job differ first, naming the operator. It is empty when their fingerprints agree.
func Diff(submitted, here *job.Graph) string {
	if submitted.Fingerprint == here.Fingerprint {
		return ""
	}
	theirs, ours := operators(submitted), operators(here)
	for _, id := range append(sortedKeys(theirs), sortedKeys(ours)...) {
		a, b := theirs[id], ours[id]
		switch {
		case b == "":
			return fmt.Sprintf("operator %s is not in this build", id)
		case a == "":
			return fmt.Sprintf("operator %s is only in this build", id)
		case a != b:
			return fmt.Sprintf("operator %s differs: submitted as %s, here %s", id, a, b)
		}
	}
	if !slices.Equal(submitted.MasterHooks, here.MasterHooks) {
		return fmt.Sprintf("the master hooks differ: submitted with %q, here %q", submitted.MasterHooks, here.MasterHooks)
	}
	return "the edges between the operators differ"
}

func operators(g *job.Graph) map[string]string {
	out := map[string]string{}
	for _, v := range g.Vertices {
		for _, op := range v.Operators {
			text := fmt.Sprintf("%s %s in %s at parallelism %d of %d", op.Kind, strings.TrimSpace(op.Signature), v.ID, v.Parallelism, v.MaxParallelism)
			if len(op.States) > 0 {
				text += " with states " + strings.Join(op.States, ", ")
			}
			out[op.ID] = text
		}
	}
	return out
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
