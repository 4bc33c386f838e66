package node_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// The golden checkpoints are whole savepoints that earlier builds have written, testdata/checkpoints/001 and so on, each with what the job gives out
// when it is restored from it. They are never changed: a build that cannot restore one of them cannot restore what users have.
//
// When a release writes something that none of them has, a kind of state or a form of handle, add it to the job (golden_job_test.go), then take the next one:
//
//	go test ./internal/node -run TestGolden_ -update
//
// It writes the next number, and changes no file that is there. Look at it with weir checkpoint inspect and weir state list, and commit it.
var update = flag.Bool("update", false, "take another golden checkpoint; those that are there stay as they are")

const (
	goldenDir      = "testdata/checkpoints"
	goldenExpected = "expected.txt"
)

func TestGolden_CheckpointsOfEarlierBuilds_AreRestored(t *testing.T) {
	if *update {
		takeGolden(t)
	}
	dirs, err := filepath.Glob(filepath.Join(goldenDir, "[0-9]*"))
	if err != nil || len(dirs) < 3 {
		t.Fatalf("found %q, %v", dirs, err)
	}
	for _, dir := range dirs {
		for _, parallelism := range []int{2, 3} {
			t.Run(fmt.Sprint(filepath.Base(dir), "/parallelism=", parallelism), func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(dir, goldenExpected))
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
				if diff := cmp.Diff(want, restoreGolden(t, dir, parallelism)); diff != "" {
					t.Errorf("the job gives out something else (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// restoreGolden runs the job from a checkpoint to its end.
func restoreGolden(t *testing.T, from string, parallelism int) []string {
	t.Helper()
	path, err := filepath.Abs(from)
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t)
	c.executor("e1", parallelism)
	c.awaitSlots(parallelism)
	out := filepath.Join(c.dir, "out")
	s := c.run(gateway.Submission{
		JobName: "golden", Params: map[string]string{"output": out}, RestorePath: path,
		Options: job.Options{Parallelism: parallelism, Checkpoint: job.CheckpointOptions{Interval: -1}},
	})
	if s.State != job.Finished {
		t.Fatalf("job is %s: %s", s.State, s.Detail)
	}
	lines, err := goldenOutput(out)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// takeGolden takes the next golden checkpoint, with some state inline and some in a file.
func takeGolden(t *testing.T) {
	t.Helper()
	c := startCluster(t)
	c.executor("e1", 2)
	c.awaitSlots(2)
	id, err := c.jobs.Submit(c.ctx, gateway.Submission{
		JobName: "golden", Params: map[string]string{"output": filepath.Join(c.dir, "out"), "hold": "true"}, Options: goldenOptions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	at := ""
	err = c.jobs.Watch(c.ctx, id, func(s gateway.JobStatus, _ []gateway.JobEvent) error {
		if at != "" || s.State != job.Running || readBySources(s) < 2*goldenEvents+goldenMarks {
			return nil
		}
		r, err := c.jobs.TriggerSavepoint(c.ctx, gateway.TriggerSavepoint{Job: id, Directory: filepath.Join(c.dir, "saved")})
		if err != nil {
			return err
		}
		at = r.Path
		_, err = c.jobs.Cancel(c.ctx, id)
		return err
	})
	if err != nil || at == "" {
		t.Fatalf("no savepoint was taken: %v", err)
	}
	want := goldenListModel(goldenModel())
	slices.Sort(want)
	if diff := cmp.Diff(want, restoreGolden(t, at, 3)); diff != "" {
		t.Fatalf("the savepoint is no good: it does not give what the model says (-want +got):\n%s", diff)
	}
	keepGolden(t, at, strings.Join(want, "\n")+"\n")
}

// keepGolden copies a checkpoint to the next number.
func keepGolden(t *testing.T, at, expected string) {
	t.Helper()
	next := ""
	for n := 1; ; n++ {
		next = filepath.Join(goldenDir, fmt.Sprintf("%03d", n))
		if _, err := os.Stat(next); os.IsNotExist(err) {
			break
		}
	}
	if err := os.CopyFS(next, os.DirFS(at)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(next, goldenExpected), []byte(expected), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", next)
}

func goldenOptions() job.Options {
	return job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: -1, InlineLimit: 1 << 10, Compression: job.ZstdCompression}}
}

// A job that cannot read its checkpoint is refused when it is submitted: nothing of it is deployed, and the answer names operator, state and both schemas.
func TestSubmission_FromACheckpointThatItCannotRead_IsRefused(t *testing.T) {
	c := startCluster(t)
	c.executor("e1", 1)
	c.awaitSlots(1)
	path, err := filepath.Abs(filepath.Join(goldenDir, "002"))
	if err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string]string{
		"golden-value": `operator keyed: state "value": value: read "struct{Last:int64,Small:int8,Ratio:float64,Tags:[]string,ByTag:map[string]uint32,Text:*string}" as "bool"`,
		"golden-key":   `operator keyed: state "value": key: keys "string" cannot become keys "int64": their hashes differ`,
		"golden-list":  `operator plain: state "even": element: read "int64" as "string"`,
		"golden-mode":  `operator plain: state "odd": it was written as union state of kind "operator-list" and is declared as split state`,
	} {
		_, err := c.jobs.Submit(c.ctx, gateway.Submission{JobName: job, RestorePath: path, AllowNonRestored: true})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", job, err, want)
		}
	}
	jobs, err := c.jobs.List(c.ctx)
	if err != nil || len(jobs) > 0 {
		t.Errorf("jobs %v, %v", jobs, err)
	}
}
