package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// consoleLimit ends commands that wait for what does not come.
const consoleLimit = 2 * time.Minute

// TestGrpcurl runs the commands of docs/grpcurl.md one after another in one shell. Each line below a command must be found in its output, in
// that order; what follows a line's text is not looked at.
func TestGrpcurl(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "grpcurl.md"))
	if err != nil {
		t.Fatal(err)
	}
	tool := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "-n", "grpcurl")
	tool.Dir, tool.Stderr = root, os.Stderr
	grpcurl, err := tool.Output()
	if err != nil {
		t.Fatalf("find grpcurl: %v", err)
	}
	dir := t.TempDir()
	c, err := startCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.stop(); err != nil {
			t.Errorf("cluster: %v", err)
		}
	}()
	c.startExecutor("a", 2)
	here := strings.NewReplacer("localhost:6123", c.address, "/tmp/weir", dir)
	steps := consoleSteps(string(doc))
	script := "grpcurl() { " + strings.TrimSpace(string(grpcurl)) + ` "$@"; }` + "\n"
	for i, s := range steps {
		script += fmt.Sprintf("echo '=== %d'\n%s\n", i, here.Replace(s.command))
	}
	ctx, cancel := context.WithTimeout(t.Context(), consoleLimit)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", "exec 2>&1\n"+script)
	shell.Dir, shell.WaitDelay = root, time.Second // what the shell has started may hold its output open
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := strings.Split(string(out), "=== ")[1:]
	if len(outputs) != len(steps) {
		t.Fatalf("%d outputs of %d commands:\n%s", len(outputs), len(steps), out)
	}
	id := c.log.wait("job submitted", 1)["job"].(string)
	for i, s := range steps {
		checkOutput(t, s, outputs[i], strings.NewReplacer("localhost:6123", c.address, "/tmp/weir", dir, "<job>", id))
	}
}

func checkOutput(t *testing.T, s consoleStep, output string, here *strings.Replacer) {
	t.Helper()
	rest := indent.ReplaceAllString(output, "\n")
	for _, l := range s.output {
		_, after, found := strings.Cut(rest, "\n"+strings.TrimSpace(here.Replace(l)))
		if !found {
			t.Errorf("after %q the line %q is not in the output:\n%s", s.command, l, output)
			return
		}
		rest = after
	}
}

var indent = regexp.MustCompile(`\n[ \t]+`)

// consoleStep is a command of a document and what it says about its output.
type consoleStep struct {
	command string
	output  []string
}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

func consoleSteps(doc string) []consoleStep {
	var steps []consoleStep
	for _, block := range consoleBlock.FindAllStringSubmatch(doc, -1) {
		for l := range strings.Lines(block[1]) {
			l = strings.TrimSuffix(l, "\n")
			if command, ok := strings.CutPrefix(l, "$ "); ok {
				steps = append(steps, consoleStep{command: command})
				continue
			}
			last := &steps[len(steps)-1]
			if more, ok := strings.CutPrefix(l, "> "); ok {
				last.command += "\n" + more
			} else {
				last.output = append(last.output, l)
			}
		}
	}
	return steps
}
