package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// A core is pure: its decisions are functions of the events it was given. These packages and files are cores.
var (
	corePackages = []string{"internal/job", "internal/element", "internal/checkpoint", "internal/retention", "internal/coordinator", "internal/scheduler"}
	coreFiles    = []string{"internal/task/core.go", "internal/task/align.go", "internal/slotpool/pool.go"}
)

// impure are the packages that a core may not import, with what to do instead.
var impure = map[string]string{
	"context":      "a core waits for nothing",
	"sync":         "one goroutine owns a core",
	"sync/atomic":  "one goroutine owns a core",
	"os":           "answer an effect; the loop does it",
	"net":          "answer an effect; the loop does it",
	"math/rand":    "take the random number as an argument",
	"math/rand/v2": "take the random number as an argument",
	"crypto/rand":  "take the random number as an argument",
	"log":          "events and effects have String; the loop logs them",
	"log/slog":     "events and effects have String; the loop logs them",
}

func TestCores_ArePure(t *testing.T) {
	found := 0
	for _, src := range sources(t) {
		if src.test || !slices.Contains(corePackages, src.pkg) && !slices.Contains(coreFiles, src.path) {
			continue
		}
		found++
		for _, fault := range impurities(src) {
			t.Error(fault)
		}
	}
	if found < len(corePackages)+len(coreFiles) {
		t.Errorf("only %d core files were found: mend the lists", found)
	}
}

func impurities(src source) []string {
	var faults []string
	for _, name := range src.imports() {
		if remedy, ok := impure[name]; ok {
			faults = append(faults, src.path+": a core may not import "+name+": "+remedy)
		}
		if strings.HasPrefix(name, "go.uber.org/zap") || strings.HasPrefix(name, "google.golang.org/grpc") {
			faults = append(faults, src.path+": a core may not import "+name)
		}
	}
	ast.Inspect(src.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			faults = append(faults, src.at(n.Pos())+": a core may not start a goroutine")
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			faults = append(faults, src.at(n.Pos())+": a core may not use a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				faults = append(faults, src.at(n.Pos())+": a core may not use a channel")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clockUses, n.Sel.Name) {
				faults = append(faults, src.at(n.Pos())+": a core may not use time."+n.Sel.Name+": take the time as an argument")
			}
		}
		return true
	})
	return faults
}

// clockUses are the functions of package time that look at the clock.
var clockUses = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}

func TestCores_RuleFindsEachImpurity(t *testing.T) {
	for name, text := range map[string]string{
		"import":    "package p\nimport _ \"sync\"\n",
		"logger":    "package p\nimport _ \"go.uber.org/zap\"\n",
		"goroutine": "package p\nfunc f() { go f() }\n",
		"channel":   "package p\nvar c chan int\n",
		"send":      "package p\nfunc f() { c <- 1 }\n",
		"receive":   "package p\nfunc f() { <-c }\n",
		"select":    "package p\nfunc f() { select {} }\n",
		"clock":     "package p\nimport \"time\"\nfunc f() { _ = time.Now() }\n",
	} {
		if len(impurities(parse(t, "p.go", text))) != 1 {
			t.Errorf("%s: the rule does not find it exactly once", name)
		}
	}
	pure := "package p\nimport \"time\"\nfunc f(now time.Time) time.Duration { return time.Second }\n"
	if faults := impurities(parse(t, "p.go", pure)); len(faults) != 0 {
		t.Errorf("the rule finds fault with pure code: %v", faults)
	}
}
