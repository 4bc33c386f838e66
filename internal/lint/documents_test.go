package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quote is a block of code in a document under a comment that names the file it comes from.
var quote = regexp.MustCompile("(?s)<!-- the text of ([^ ]+), checked by a test -->\n```[a-z]*\n(.*?)```")

// Code that a document shows is code that is compiled and tested.
func TestDocuments_QuoteFilesAsTheyAre(t *testing.T) {
	dir, found := root(t), 0
	files(t, func(name string, data []byte) {
		if filepath.Ext(name) != ".md" {
			return
		}
		for _, m := range quote.FindAllStringSubmatch(string(data), -1) {
			found++
			text, err := os.ReadFile(filepath.Join(dir, m[1]))
			if err != nil {
				t.Errorf("%s quotes a file that cannot be read: %v", name, err)
			} else if string(text) != m[2] {
				t.Errorf("%s shows another text than %s has: copy the file into the document", name, m[1])
			}
		}
	})
	if found == 0 {
		t.Error("no document quotes a file: README.md must show a job of one's own")
	}
}

var (
	block  = regexp.MustCompile("(?s)```.*?```")
	link   = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	target = regexp.MustCompile("`make ([a-z0-9-]+)[^`]*`")
)

// A document leads to files and targets that exist.
func TestDocuments_LinksAndTargetsExist(t *testing.T) {
	dir := root(t)
	makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	files(t, func(name string, data []byte) {
		if filepath.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(block.ReplaceAllString(string(data), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
		for _, m := range target.FindAllStringSubmatch(string(data), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s names make %s, which the Makefile does not have", name, m[1])
			}
		}
	})
}
