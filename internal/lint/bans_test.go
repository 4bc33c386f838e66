package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestBans(t *testing.T) {
	for _, src := range sources(t) {
		for _, fault := range banned(src) {
			t.Error(fault)
		}
	}
}

// banned finds what no file of the project may contain.
func banned(src source) []string {
	var faults []string
	bubble := src.test && slices.Contains(src.imports(), "testing/synctest") // there a sleep moves the fake clock, and takes no time
	ban := func(pos token.Pos, what string) { faults = append(faults, src.at(pos)+": "+what) }
	ast.Inspect(src.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				ban(n.Pos(), "no init(): what a program consists of is listed where it is put together")
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			switch {
			case x != nil && x.Name == "time" && sel.Sel.Name == "Sleep" && !bubble:
				ban(n.Pos(), "no time.Sleep: wait for what you need, with a channel or a timer in a select; in a test, in a bubble of testing/synctest")
			case sel.Sel.Name == "SkipNow", sel.Sel.Name == "Skip" && len(n.Args) == 0 && src.test:
				ban(n.Pos(), "a test that is skipped says why")
			}
		}
		return true
	})
	return faults
}

func TestBans_RuleFindsEach(t *testing.T) {
	for name, text := range map[string]string{
		"init":     "package p\nfunc init() {}\n",
		"sleep":    "package p\nfunc f() { time.Sleep(1) }\n",
		"skip":     "package p\nfunc f() { t.Skip() }\n",
		"skip now": "package p\nfunc f() { t.SkipNow() }\n",
	} {
		if len(banned(parse(t, "p_test.go", text))) != 1 {
			t.Errorf("%s: the rule does not find it", name)
		}
	}
	if faults := banned(parse(t, "p_test.go", "package p\nfunc f() { t.Skip(\"no data\") }\nfunc (x T) init() {}\n")); len(faults) != 0 {
		t.Errorf("the rule finds fault with good code: %v", faults)
	}
}

// machinePath is a folder that exists on somebody's machine only.
var machinePath = regexp.MustCompile(`(?:^|[\s"'=(:,` + "`" + `])/(?:root|home|work|Users)/[A-Za-z.]`)

func TestBans_NoTextNamesAMachinePath(t *testing.T) {
	files(t, func(name string, data []byte) {
		if strings.HasSuffix(name, ".csv") {
			return
		}
		for i, line := range strings.Split(string(data), "\n") {
			if found := machinePath.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is a path on one machine: find the folder from the working directory, or take it as a flag", name, i+1, found)
			}
		}
	})
	for _, text := range []string{"see " + "/home" + "/me/x", `"/` + `root/go"`, "/" + "work/x"} {
		if !machinePath.MatchString(text) {
			t.Errorf("the rule does not find %q", text)
		}
	}
}
