package lint

import (
	"slices"
	"strings"
	"testing"
)

// arrows says which packages of ours a package may import outside its tests. A package that is not listed may not exist; arrows point to the
// vocabulary (job, element, checkpoint, gateway), never from one core to another, and the wire stays at the rim.
var arrows = map[string][]string{
	"internal/job":     {},
	"internal/element": {"internal/job"},

	"internal/location":    {},
	"internal/checkpoint":  {"internal/job", "internal/location"},
	"internal/gateway":     {"internal/job", "internal/checkpoint"},
	"internal/archive":     {"internal/job", "internal/checkpoint", "internal/location", "internal/retention"},
	"internal/retention":   {"internal/job", "internal/checkpoint"},
	"internal/stateschema": {"internal/job", "internal/checkpoint", "stream/codec"},
	"internal/coordinator": {"internal/job", "internal/checkpoint", "internal/retention"},
	"internal/scheduler":   {"internal/job", "internal/checkpoint"},

	"stream/codec":                 {},
	"internal/state":               {"internal/job"},
	"internal/linked":              {"internal/job", "stream/codec"},
	"internal/timer":               {"internal/job", "stream/codec"},
	"internal/cached":              {"internal/job", "internal/state", "stream/codec"},
	"internal/lsm":                 {"internal/cached"},
	"stream":                       {"internal/cached", "internal/job", "internal/linked", "internal/state", "internal/timer", "stream/codec"},
	"internal/plan":                {"internal/job", "stream"},
	"connector/connectortest":      {"stream"},
	"connector/datagen":            {"stream", "connector/internal/pace"},
	"connector/file":               {"stream", "connector/internal/pace"},
	"connector/internal/pace":      {"stream"},
	"connector/print":              {"stream"},
	"internal/storage":             {},
	"internal/storage/storagetest": {"internal/storage"},
	"internal/storage/s3":          {"internal/storage", "internal/location"},
	"internal/storage/s3/s3test":   {},
	"internal/storage/schemes":     {"internal/storage", "internal/storage/s3", "internal/location"},

	"internal/exchange":    {"internal/job", "internal/element"},
	"internal/compression": {"internal/checkpoint"},
	"internal/segment":     {"internal/job", "internal/checkpoint"},
	"internal/localstate":  {"internal/job", "internal/checkpoint"},
	"internal/task":        {"internal/job", "internal/checkpoint", "internal/element", "internal/compression", "stream"},
	"internal/taskexecutor": {
		"internal/cached", "internal/job", "internal/checkpoint", "internal/element", "internal/gateway", "internal/plan", "internal/task",
		"internal/exchange", "internal/storage", "internal/location", "internal/compression", "internal/segment", "internal/localstate", "stream",
	},
	"internal/dirlock":    {},
	"internal/workdir":    {"internal/job", "internal/checkpoint", "internal/dirlock"},
	"internal/ha":         {"internal/job", "internal/checkpoint", "internal/dirlock", "internal/storage"},
	"internal/inbox":      {},
	"internal/masterhook": {"internal/job", "internal/checkpoint", "internal/gateway"},
	"internal/slotpool":   {"internal/job", "internal/gateway"},
	"internal/board":      {"internal/checkpoint", "internal/coordinator", "internal/gateway", "internal/retention"},
	"internal/recovery":   {"internal/job", "internal/checkpoint", "internal/retention", "internal/archive", "internal/gateway", "internal/ha", "internal/location", "internal/stateschema"},
	"internal/rescale":    {"internal/job", "internal/checkpoint", "internal/gateway"},
	"internal/jobmaster": {
		"internal/job", "internal/checkpoint", "internal/gateway", "internal/coordinator", "internal/scheduler", "internal/slotpool", "internal/inbox", "internal/ha",
		"internal/archive", "internal/masterhook", "internal/location", "internal/board", "internal/recovery", "internal/rescale", "internal/retention",
	},

	"internal/rpc/pb": {},
	"internal/rpc":    {"internal/rpc/pb", "internal/job", "internal/checkpoint", "internal/gateway"},

	"internal/node": {
		"internal/job", "internal/checkpoint", "internal/element", "internal/gateway", "internal/jobmaster", "internal/taskexecutor",
		"internal/exchange", "internal/rpc", "internal/storage", "internal/storage/schemes", "internal/inspect", "internal/ha", "internal/masterhook", "internal/plan", "internal/archive",
		"internal/metrics", "internal/workdir", "internal/cached", "internal/lsm", "internal/retention", "internal/localstate", "stream",
	},
	"internal/sim": {
		"internal/rescale",
		"internal/job", "internal/checkpoint", "internal/element", "internal/coordinator", "internal/scheduler", "internal/task",
		"internal/gateway", "internal/board", "internal/ha", "internal/slotpool", "internal/storage", "internal/storage/storagetest", "internal/retention",
	},
	"internal/metrics": {"internal/job", "internal/gateway"},
	"internal/inspect": {"internal/job", "internal/checkpoint", "internal/retention", "internal/compression", "internal/location", "internal/storage", "internal/storage/schemes", "stream/codec"},
	"internal/inspect/inspecttest": {
		"internal/job", "internal/checkpoint", "internal/gateway", "internal/inspect", "internal/retention", "internal/storage", "internal/storage/schemes",
	},
	"internal/cli": {
		"internal/job", "internal/checkpoint", "internal/gateway", "internal/rpc", "internal/node", "internal/inspect", "internal/plan",
		"internal/storage", "internal/storage/schemes", "internal/cli/view", "internal/cli/format", "internal/cli/estimate", "stream",
	},
	"internal/cli/estimate": {"internal/gateway", "internal/cli/format"},
	"internal/cli/format":   {},
	"internal/cli/view":     {"internal/job", "internal/checkpoint", "internal/gateway", "internal/inspect"},
	"internal/lint":         {},

	// What is put together: programs and the public door for a program of one's own.
	"stream/app":         {"internal/cli", "stream"},
	"cmd/jobmaster":      {"internal/cli", "examples"},
	"cmd/taskexecutor":   {"internal/cli", "examples"},
	"cmd/weir":           {"internal/cli", "examples"},
	"examples":           {"examples/flights", "examples/wordcount", "stream"},
	"examples/flights":   {"connector/file", "stream"},
	"examples/wordcount": {"connector/file", "stream"},
	// What a user's program may import is what this example imports: nothing internal.
	"examples/wordlength": {"connector/file", "stream", "stream/app"},

	// Tools around the product; nothing of it imports them.
	"internal/harness":           {"internal/gateway", "internal/rpc", "internal/inspect/inspecttest"},
	"internal/harness/reference": {},
	"internal/bench": {
		"internal/cli", "internal/harness", "internal/gateway", "internal/job", "connector/datagen", "examples/flights", "stream",
	},
	"internal/chaos": {},
	"deploy/answer":  {"internal/harness/reference"},
	"deploy/demo":    {"deploy/answer", "internal/harness", "internal/gateway", "internal/job", "internal/checkpoint"},
}

func TestArrows_OnlyThoseOfTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		seen[src.pkg] = true
		allowed, known := arrows[src.pkg]
		if !known {
			t.Errorf("%s: package %s is not in the table: add it, with the arrows that its comment promises", src.path, src.pkg)
			continue
		}
		for _, name := range ours(src.imports()) {
			if !slices.Contains(allowed, name) {
				t.Errorf("%s: %s may not import %s: move the code, or declare an interface where it is needed", src.path, src.pkg, name)
			}
		}
	}
	for pkg := range arrows {
		if !seen[pkg] && pkg != "internal/rpc/pb" { // generated, so not read
			t.Errorf("package %s of the table does not exist: take it out", pkg)
		}
	}
}

// ours are the imports from this module.
func ours(imports []string) []string {
	return slices.DeleteFunc(imports, func(name string) bool {
		top, _, _ := strings.Cut(name, "/")
		return !slices.Contains([]string{"internal", "stream", "connector", "examples", "cmd", "deploy"}, top)
	})
}

// The table itself must be a hierarchy; Go forbids cycles between packages, but not a table that would allow one.
func TestArrows_TableHasNoCycle(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(pkg string, from []string)
	visit = func(pkg string, from []string) {
		switch state[pkg] {
		case done:
			return
		case visiting:
			t.Fatalf("the table allows a cycle: %s", strings.Join(append(from, pkg), " -> "))
		}
		state[pkg] = visiting
		for _, next := range arrows[pkg] {
			visit(next, append(slices.Clone(from), pkg))
		}
		state[pkg] = done
	}
	for pkg := range arrows {
		visit(pkg, nil)
	}
}
