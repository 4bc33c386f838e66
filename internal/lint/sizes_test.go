package lint

import (
	"fmt"
	"go/ast"
	"testing"
)

// The limits, in lines and fields.
const (
	maxFunction = 70
	maxFile     = 500
	hardFile    = 800 // no reason is good enough beyond this
	maxFields   = 15
	maxPackage  = 3000 // without tests
)

// sizeExceptions are over a limit, each for a reason.
var sizeExceptions = map[string]string{
	"stream":                             "a job is written with one import; what stands alone is in packages below it, as codec, linked and timer",
	"internal/sim":                       "a whole cluster is simulated, and its parts are of use to nobody else",
	"internal/sim/config.go Faults":      "one rate for each kind of fault",
	"internal/sim/sim.go Sim":            "one field for each part of the simulated world",
	"internal/sim/task.go simTask":       "what a task and its loop have together, as the simulation needs no two goroutines",
	"internal/sim/invariants.go watcher": "one field for each thing that an invariant remembers",
}

func TestSizes(t *testing.T) {
	findings, packages := map[string]string{}, map[string]int{}
	for _, src := range sources(t) {
		if src.lines > hardFile {
			t.Errorf("%s: %d lines, over the hard limit of %d: give each idea a file of its own", src.path, src.lines, hardFile)
		} else if src.lines > maxFile {
			findings[src.path] = fmt.Sprintf("%d lines, over %d: give each idea a file of its own", src.lines, maxFile)
		}
		if !src.test {
			packages[src.pkg] += src.lines
		}
		sizesInside(src, findings)
	}
	for pkg, lines := range packages {
		if lines > maxPackage {
			findings[pkg] = fmt.Sprintf("%d lines, over %d: which second noun lives in this package?", lines, maxPackage)
		}
	}
	report(t, findings, sizeExceptions)
}

func sizesInside(src source, findings map[string]string) {
	ast.Inspect(src.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body == nil {
				return false
			}
			if lines := src.fset.Position(n.End()).Line - src.fset.Position(n.Pos()).Line + 1; lines > maxFunction {
				findings[src.path+" "+n.Name.Name] = fmt.Sprintf("%d lines, over %d: keep the control flow, move the steps out", lines, maxFunction)
			}
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok && !src.test && s.Fields.NumFields() > maxFields {
				findings[src.path+" "+n.Name.Name] = fmt.Sprintf("%d fields, over %d: group those that belong together", s.Fields.NumFields(), maxFields)
			}
		}
		return true
	})
}
