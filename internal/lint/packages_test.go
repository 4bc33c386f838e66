package lint

import (
	"slices"
	"strings"
	"testing"
)

// headings open the paragraphs of a package comment, in this order; only the first paragraph and those marked are needed in every package.
var headings = []struct {
	name   string
	needed bool
}{
	{"Owns", true},
	{"Promises", false},
	{"Goroutines", true},
	{"Not here", false},
	{"Start at", true},
}

// vagueNames say nothing about what a package is.
var vagueNames = []string{"util", "utils", "common", "types", "helpers", "helper", "manager", "misc", "base"}

func TestPackages_HaveOneCommentInTheForm(t *testing.T) {
	comments, files := map[string][]source{}, map[string]int{}
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		files[src.pkg]++
		if src.ast.Doc != nil {
			comments[src.pkg] = append(comments[src.pkg], src)
		}
	}
	for pkg := range files {
		docs := comments[pkg]
		switch {
		case len(docs) == 0:
			t.Errorf("%s: no package comment; write one with the paragraphs Owns, Promises, Goroutines, Not here, Start at", pkg)
		case len(docs) > 1:
			t.Errorf("%s: package comments in %s and %s; keep one", pkg, docs[0].path, docs[1].path)
		default:
			for _, fault := range commentFaults(docs[0], files[pkg] == 1) {
				t.Errorf("%s: %s", docs[0].path, fault)
			}
		}
		if name := pkg[strings.LastIndex(pkg, "/")+1:]; slices.Contains(vagueNames, name) {
			t.Errorf("%s: the name says nothing: a package is a noun of the domain", pkg)
		}
	}
}

// commentFaults finds what a package comment lacks. A program of a single file needs no more than its first sentence.
func commentFaults(src source, single bool) []string {
	text := src.ast.Doc.Text()
	var faults []string
	kind := "Package " + src.ast.Name.Name + " "
	if src.ast.Name.Name == "main" {
		kind = "Command "
	}
	if !strings.HasPrefix(text, kind) {
		faults = append(faults, "the package comment must begin with "+kind)
	}
	if n := strings.Count(text, "\n"); n > 60 {
		faults = append(faults, "the package comment is too long to be read: move what is more than an introduction to docs/")
	}
	if single && src.ast.Name.Name == "main" {
		return faults
	}
	last := -1
	for _, h := range headings {
		at := strings.Index("\n"+text, "\n"+h.name+": ")
		switch {
		case at < 0 && h.needed:
			faults = append(faults, "the package comment has no paragraph "+h.name+":")
		case at >= 0 && at < last:
			faults = append(faults, "the paragraphs of the package comment are not in order: "+h.name)
		}
		last = max(last, at)
	}
	return faults
}

func TestPackages_RuleFindsFaultsInComments(t *testing.T) {
	good := "// Package p is a thing.\n//\n// Owns: a.\n//\n// Goroutines: none.\n//\n// Start at: p.go.\npackage p\n"
	if faults := commentFaults(parse(t, "p.go", good), true); len(faults) != 0 {
		t.Errorf("the rule finds fault with a good comment: %v", faults)
	}
	for name, change := range map[string][2]string{
		"first words":  {"Package p is", "This is"},
		"missing":      {"Owns: a.", "It owns a."},
		"out of order": {"Owns: a.", "Start at: q.go."},
	} {
		if len(commentFaults(parse(t, "p.go", strings.Replace(good, change[0], change[1], 1)), true)) == 0 {
			t.Errorf("%s: the rule does not find it", name)
		}
	}
}
