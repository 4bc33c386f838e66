package lint

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proofs are the documents that say which test shows what they claim.
var proofs = []string{"docs/faults.md", "docs/semantics.md", "docs/ARCHITECTURE.md", "docs/decisions.md"}

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	testName  = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*$`)
	fileName  = regexp.MustCompile(`^[\w./-]+\.(go|txt|md|proto)$`)
	faultTest = regexp.MustCompile(`^TestFault_(B\d+)_`)
)

// tree is what a document may name.
type tree struct {
	tests map[string]bool
	files []string
}

// missing lists what a document names and the tree does not have. A file may be named by the end of its path.
func (w tree) missing(text string) (out []string) {
	for _, m := range code.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		name := m[1]
		switch {
		case testName.MatchString(name) && !w.tests[name]:
			out = append(out, "test "+name)
		case fileName.MatchString(name) && !w.has(name):
			out = append(out, "file "+name)
		}
	}
	return out
}

func (w tree) has(name string) bool {
	return slices.ContainsFunc(w.files, func(f string) bool { return f == name || strings.HasSuffix(f, "/"+name) })
}

func checkout(t *testing.T) (w tree, docs map[string]string) {
	t.Helper()
	w.tests, docs = map[string]bool{}, map[string]string{}
	files(t, func(name string, data []byte) {
		w.files = append(w.files, name)
		if path.Ext(name) == ".md" {
			docs[name] = string(data)
		}
	})
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.test && f.Recv == nil && testName.MatchString(f.Name.Name) {
				w.tests[f.Name.Name] = true
			}
		}
	}
	return w, docs
}

// told are the documents that say which rule or fault a transcript is about, and taught the packages whose transcripts they tell of.
var (
	told   = []string{"docs/semantics.md", "docs/faults.md"}
	taught = regexp.MustCompile(`^internal/((?:coordinator|task)/testdata/.*\.txt)$`)
)

// A transcript teaches a rule, and is found from there.
func TestDocuments_EveryTranscriptIsNamed(t *testing.T) {
	w, docs := checkout(t)
	found := 0
	for _, file := range w.files {
		m := taught.FindStringSubmatch(file)
		if m == nil {
			continue
		}
		found++
		if !slices.ContainsFunc(told, func(doc string) bool { return strings.Contains(docs[doc], "`"+m[1]+"`") }) {
			t.Errorf("no row of docs/semantics.md or docs/faults.md names `%s`: put it where its rule is", m[1])
		}
	}
	if found == 0 {
		t.Error("no transcript was found: the rule looks at the wrong folder")
	}
}

// A proof that a document names exists.
func TestDocuments_NamedTestsAndFilesExist(t *testing.T) {
	w, docs := checkout(t)
	for _, name := range proofs {
		text, ok := docs[name]
		if !ok {
			t.Errorf("%s is gone: take it out of the list, or write it", name)
		}
		for _, what := range w.missing(text) {
			t.Errorf("%s names the %s, which does not exist", name, what)
		}
	}
}

// A test that looks for a known fault stands in the row of that fault.
func TestDocuments_EveryFaultTestIsInItsRow(t *testing.T) {
	w, docs := checkout(t)
	rows := strings.Split(docs["docs/faults.md"], "\n")
	for _, name := range slices.Sorted(maps.Keys(w.tests)) {
		m := faultTest.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		if !slices.ContainsFunc(rows, func(row string) bool {
			return strings.HasPrefix(row, "| "+m[1]+" ") && strings.Contains(row, "`"+name+"`")
		}) {
			t.Errorf("docs/faults.md does not name %s in the row of %s", name, m[1])
		}
	}
}

// ranges are the rows that docs/semantics.md must have: the rules of each kind, by their letter.
var ranges = map[string]int{"T": 18, "D": 6, "R": 13, "N": 14, "K": 7, "C": 14, "F": 9, "E": 17, "V": 7, "W": 7, "X": 6}

// incomplete lists the rows that are missing in a table of rules, and those that neither name a proof nor say why there is none.
func incomplete(text string, last map[string]int) (out []string) {
	rows := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			rows[strings.TrimSpace(cells[1])] = strings.TrimSpace(cells[3])
		}
	}
	for _, letter := range slices.Sorted(maps.Keys(last)) {
		for n := 1; n <= last[letter]; n++ {
			id := letter + strconv.Itoa(n)
			proof, ok := rows[id]
			switch {
			case !ok:
				out = append(out, id+" is missing")
			case !strings.HasPrefix(proof, "`") && !strings.HasPrefix(proof, "later: ") && !strings.HasPrefix(proof, "none: "):
				out = append(out, id+" has no proof")
			}
		}
	}
	return out
}

// Every rule has its row, with a proof or the reason why there is none.
func TestDocuments_SemanticsAreComplete(t *testing.T) {
	_, docs := checkout(t)
	for _, what := range incomplete(docs["docs/semantics.md"], ranges) {
		t.Errorf("docs/semantics.md: %s", what)
	}
	text := "| A1 | x | `TestThere` |\n| A2 | x | later: y |\n| A3 | x | soon |\n| A5 | | none: z |\n"
	if got := incomplete(text, map[string]int{"A": 5}); !slices.Equal(got, []string{"A3 has no proof", "A4 is missing"}) {
		t.Errorf("the rule finds %q", got)
	}
}

// The rule sees what it has to see.
func TestDocuments_RuleFindsNamesOfNothing(t *testing.T) {
	w := tree{tests: map[string]bool{"TestThere": true}, files: []string{"internal/task/core.go", "a.md"}}
	text := "`TestThere`, `TestGone`, `TestFault_B1_...`, `task/core.go`, `core.go`, `k/core.go`, `a.md`, `b.md`, `weir run a.go`\n```\n`TestInABlock`\n```\n"
	want := []string{"test TestGone", "file k/core.go", "file b.md"}
	if got := w.missing(text); !slices.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
}
