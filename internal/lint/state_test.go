package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// variableExceptions are package-level variables that change, each for a reason.
var variableExceptions = map[string]string{
	"internal/rpc/frames.go exchangeService": "grpc takes the address of a service's description, and only reads it",
}

// Two clusters must fit into one process, so nothing that changes is kept in a package. What counts as changing, seen from the text alone: a
// variable without a value, one of a type of package sync, and one that is assigned to or whose address is taken.
func TestPackages_KeepNoStateThatChanges(t *testing.T) {
	byPackage := map[string][]source{}
	for _, src := range sources(t) {
		if !src.test {
			byPackage[src.pkg] = append(byPackage[src.pkg], src)
		}
	}
	findings := map[string]string{}
	for _, group := range byPackage {
		for key, what := range changing(group) {
			findings[key] = what + ": give it an owner, a value that New returns"
		}
	}
	report(t, findings, variableExceptions)
}

// changing finds the package-level variables of one package that change.
func changing(group []source) map[string]string {
	out := map[string]string{}
	where := map[string]string{} // name to key
	for _, src := range group {
		for _, decl := range src.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				declared(src, spec.(*ast.ValueSpec), where, out)
			}
		}
	}
	for _, src := range group {
		ast.Inspect(src.ast, func(n ast.Node) bool {
			for _, target := range targets(n) {
				if key, ok := where[rootName(src, target)]; ok {
					out[key] = "a package-level variable that is changed at " + src.at(n.Pos())
				}
			}
			return true
		})
	}
	return out
}

func declared(src source, spec *ast.ValueSpec, where, out map[string]string) {
	for _, name := range spec.Names {
		if name.Name == "_" {
			continue
		}
		key := src.path + " " + name.Name
		where[name.Name] = key
		if len(spec.Values) == 0 {
			out[key] = "a package-level variable without a value"
		}
		ast.Inspect(spec, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "sync" || x.Name == "atomic") {
					out[key] = "a package-level variable of a type of package " + x.Name
				}
			}
			_, function := n.(*ast.FuncLit)
			return !function
		})
	}
}

// targets are the expressions that a node changes.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// rootName is the variable at the left end of x.y[z], or "" when it is a local one.
func rootName(src source, e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			if x.Obj != nil && src.ast.Scope.Lookup(x.Name) != x.Obj {
				return "" // the parser resolves within a file, which is enough to know a local variable
			}
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}

func TestPackages_RuleFindsStateThatChanges(t *testing.T) {
	const text = `package p
import "sync"
var fixed = map[string]int{"a": 1}
var zero int
var lock = sync.Mutex{}
var counter = 1
var table = map[string]int{}
func f() { counter++; table["x"] = 1; fixed := 2; fixed++; local := 1; _ = &local; var zero2 int; zero2 = 1; _ = zero2 }
`
	var names []string
	for _, key := range sorted(changing([]source{parse(t, "p.go", text)})) {
		names = append(names, strings.TrimPrefix(key, "p.go "))
	}
	if got, want := strings.Join(names, " "), "counter lock table zero"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
