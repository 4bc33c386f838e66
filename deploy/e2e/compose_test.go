//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/harness"
)

// compose is a cluster of containers under a project name of its own.
type compose struct {
	t       *testing.T
	command []string // docker compose, or docker-compose
	project string
	root    string
	env     []string
}

// composeCommand finds the Compose tool, the plug-in or the older program.
func composeCommand(t *testing.T) []string {
	t.Helper()
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}
	}
	t.Fatal("neither docker compose nor docker-compose is installed")
	return nil
}

// start brings the cluster up, and takes it down with its volumes at the end of the test, however that ends.
func start(t *testing.T, executors int, env ...string) *compose {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	c := &compose{
		t: t, command: composeCommand(t), root: root, env: append(os.Environ(), env...),
		project: fmt.Sprintf("weir-e2e-%d", os.Getpid()),
	}
	t.Cleanup(c.down)
	c.must("up", "--detach", "--scale", fmt.Sprintf("taskexecutor=%d", executors))
	return c
}

func (c *compose) down() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if c.t.Failed() {
		logs, _ := c.run(ctx, "logs", "--no-color", "--tail", "60") // best effort
		c.t.Logf("logs of the containers:\n%s", logs)
	}
	if out, err := c.run(ctx, "down", "--volumes", "--timeout", "2"); err != nil {
		c.t.Errorf("docker compose down: %v\n%s", err, out)
	}
}

func (c *compose) run(ctx context.Context, args ...string) (string, error) {
	args = append(append(c.command[1:len(c.command):len(c.command)],
		"--project-name", c.project, "--file", filepath.Join(c.root, "deploy", "docker-compose.yml")), args...)
	cmd := exec.CommandContext(ctx, c.command[0], args...)
	cmd.Env = c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *compose) must(args ...string) string {
	c.t.Helper()
	out, err := c.run(c.t.Context(), args...)
	if err != nil {
		c.t.Fatalf("docker compose %s: %v\n%s", args[0], err, out)
	}
	return strings.TrimSpace(out)
}

// containers lists the running containers of a service.
func (c *compose) containers(service string) []string {
	c.t.Helper()
	return strings.Fields(docker(c.t, "ps", "--quiet",
		"--filter", "label=com.docker.compose.project="+c.project, "--filter", "label=com.docker.compose.service="+service))
}

// healthy waits until the health check of every container of a service has passed.
func (c *compose) healthy(service string, n int) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		states := map[string]int{}
		for _, id := range c.containers(service) {
			states[docker(c.t, "inspect", "--format", "{{.State.Health.Status}}", id)]++
		}
		if states["healthy"] == n {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: %v after a minute, want %d healthy", service, states, n)
		}
		<-time.After(200 * time.Millisecond)
	}
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "docker", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
