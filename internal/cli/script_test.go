package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

var rewrite = flag.Bool("rewrite", false, "write the output of the commands into the scripts")

// TestScripts runs the command lines as processes against a job master in this one. Beside the commands of testscript the scripts have:
//
//	executor ID SLOTS     start a task executor and wait until it is registered
//	exits CODE COMMAND... run a command that must end with an exit code
//	id                    put the id that the last command printed into $ID
//	await running         wait until all tasks of the job $ID run
//	await checkpoints N   wait until the job $ID has completed N checkpoints
//	await records V       wait until a task of the vertex V of the job $ID has got a record
//	json                  cut what differs between runs out of the last command's output, into the file out.json
func TestScripts(t *testing.T) {
	sample, err := filepath.Abs(filepath.Join("..", "..", "examples", "data", "flights-20k.csv"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *rewrite, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			c, err := startCluster(env.WorkDir)
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := c.stop(); err != nil {
					t.Errorf("cluster: %v", err)
				}
			})
			env.Values[clusterKey{}] = c
			env.Setenv("WEIR_JOBMASTER", c.address)
			env.Setenv("WEIR_HTTP", "127.0.0.1:0") // the default ports are those of one cluster on this machine
			env.Setenv("FLIGHTS", sample)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"executor": func(ts *testscript.TestScript, _ bool, args []string) {
				slots, err := strconv.Atoi(args[1])
				ts.Check(err)
				clusterOf(ts).startExecutor(args[0], slots)
			},
			"exits": exits,
			"id": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("ID", strings.TrimSpace(ts.ReadFile("stdout")))
			},
			"await": await,
			"json": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Check(os.WriteFile(ts.MkAbs("out.json"), []byte(masked(ts.ReadFile("stdout"), ts.Getenv("WORK"))), 0o600))
			},
		},
	})
}

type clusterKey struct{}

func clusterOf(ts *testscript.TestScript) *cluster { return ts.Value(clusterKey{}).(*cluster) }

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	wanted := func(s gateway.JobStatus) bool {
		for _, v := range s.Vertices {
			for _, t := range v.Tasks {
				if t.State != job.TaskRunning {
					return false
				}
			}
		}
		return true
	}
	switch args[0] {
	case "records":
		wanted = func(s gateway.JobStatus) bool {
			for _, v := range s.Vertices {
				for _, t := range v.Tasks {
					if string(v.ID) == args[1] && t.RecordsIn > 0 {
						return true
					}
				}
			}
			return false
		}
	case "checkpoints":
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		wanted = func(s gateway.JobStatus) bool { return s.Completed >= n }
	}
	seen, err := clusterOf(ts).await(context.Background(), job.ID(ts.Getenv("ID")), wanted)
	ts.Check(err)
	if !seen {
		ts.Fatalf("the job ended first")
	}
}

// masked replaces what differs between runs: times, durations, sizes, ids, addresses, counts of records.
func masked(s, work string) string {
	for _, m := range masks {
		s = m.find.ReplaceAllString(s, m.with)
	}
	return strings.ReplaceAll(s, work, "WORK")
}
