package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/weirstream/weir"

// source is one Go file of the checkout.
type source struct {
	path  string // from the root, with slashes
	pkg   string // its folder
	test  bool
	lines int
	ast   *ast.File
	fset  *token.FileSet
}

// at names a place of the file for a message.
func (s source) at(pos token.Pos) string {
	return s.path + ":" + strconv.Itoa(s.fset.Position(pos).Line)
}

// imports lists the packages that the file imports, those of this module without its path.
func (s source) imports() []string {
	var out []string
	for _, spec := range s.ast.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has let only string literals through
		}
		out = append(out, strings.TrimPrefix(name, modulePath+"/"))
	}
	return out
}

// root finds the checkout from the folder that the test runs in.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+modulePath+"\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod of %s above the working directory", modulePath)
		}
	}
}

// files calls f with every file of the project that is not built or generated, by its path from the root.
func files(t *testing.T, f func(name string, data []byte)) {
	t.Helper()
	dir := root(t)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if rel == ".git" && !entry.IsDir() {
			return nil // of a second working tree
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", ".cache", "bin", "internal/rpc/pb"}, rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if rel == ".git" { // it says where Git has its data
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f(rel, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sources parses every Go file.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	files(t, func(name string, data []byte) {
		if path.Ext(name) == ".go" {
			out = append(out, parse(t, name, string(data)))
		}
	})
	if len(out) < 100 {
		t.Fatalf("only %d Go files were found: the rules look at the wrong folder", len(out))
	}
	return out
}

// parse makes a source of a text; tests of the rules use it for texts of their own.
func parse(t *testing.T, name, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{
		path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(text, "\n"), ast: file, fset: fset,
	}
}

// report fails the test once for each finding, and for each exception that is not needed any more.
func report(t *testing.T, findings map[string]string, exceptions map[string]string) {
	t.Helper()
	for _, key := range sorted(findings) {
		if _, excepted := exceptions[key]; !excepted {
			t.Errorf("%s: %s", key, findings[key])
		}
	}
	for _, key := range sorted(exceptions) {
		if _, found := findings[key]; !found {
			t.Errorf("the exception for %s is not needed any more: take it out of the list", key)
		}
	}
}

func sorted(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
