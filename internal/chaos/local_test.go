package chaos

import (
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/harness"
	"github.com/weirstream/weir/internal/harness/reference"
	"github.com/weirstream/weir/internal/job"
)

// TestKill9_ExecutorInItsDataDirectory_RestoresFromItsLocalCopies: O1, O2. An executor that is killed and started again has the same name, gets its tasks
// back, and starts them from what it kept itself. Copies that are damaged meanwhile are noticed, and the answer is exact.
func TestKill9_ExecutorInItsDataDirectory_RestoresFromItsLocalCopies(t *testing.T) {
	input, want := reference.Data(t, "kjv.txt.gz"), reference.Data(t, filepath.Join("expected", "kjv-wordcount.csv.gz"))
	c, err := harness.Start(binaries, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := lis.Addr().String()
	_ = lis.Close()
	start := func() {
		t.Helper()
		if err := c.StartExecutor("e1", 2, "--id", "", "--http", web); err != nil {
			t.Fatal(err)
		}
	}
	start()
	if err := c.AwaitSlots(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(c.Dir, "output")
	id, err := c.Jobs.Submit(t.Context(), gateway.Submission{
		JobName: "wordcount", Params: map[string]string{"input": input, "output": output, "rate": "6000"},
		Options: job.Options{Parallelism: 2, Checkpoint: job.CheckpointOptions{Interval: 200 * time.Millisecond, InlineLimit: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	before := awaitStatus(t, c, id, "checkpoints", func(s gateway.JobStatus) bool { return completed(s) > 2 })
	name := tasksOf(before)[0].Executor
	again := func(what string, meanwhile func()) {
		t.Helper()
		if err := c.KillExecutor("e1"); err != nil {
			t.Fatal(err)
		}
		meanwhile()
		start()
		restarted := awaitStatus(t, c, id, "a checkpoint "+what, func(s gateway.JobStatus) bool {
			return s.Restarts > before.Restarts && completed(s) > completed(before)
		})
		if got := tasksOf(restarted)[0].Executor; got != name || got == "" {
			t.Errorf("%s: the executor is %q, it was %q", what, got, name)
		}
		before = restarted
	}

	again("from local copies", func() {})
	if local, stored, damaged := restored(t, web); local == 0 || stored != 0 || damaged != 0 {
		t.Errorf("%d bytes from local copies, %d from the storage, %d copies damaged: want all from local copies", local, stored, damaged)
	}
	again("from damaged copies", func() { damageCopies(t, filepath.Join(c.DataDir("e1"), "local")) })
	if _, stored, damaged := restored(t, web); stored == 0 || damaged == 0 {
		t.Errorf("%d bytes from the storage, %d copies damaged: want them noticed", stored, damaged)
	}
	again("from no copies", func() {
		if err := os.RemoveAll(filepath.Join(c.DataDir("e1"), "local")); err != nil {
			t.Fatal(err)
		}
	})
	if last := await(t, c, id); last.State != job.Finished {
		t.Fatalf("job is %s: %s", last.State, last.Detail)
	}
	if diff := reference.DiffRows(t, output, want, ""); diff != "" {
		t.Fatal(diff)
	}
	audit(t, c)
}

// restored reads from the metrics of an executor where its tasks had their state from.
func restored(t *testing.T, web string) (local, stored, damaged int64) {
	t.Helper()
	r, err := http.Get("http://" + web + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	page, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) int64 {
		m := regexp.MustCompile(`(?m)^weir_taskexecutor_` + name + ` (\S+)$`).FindSubmatch(page)
		if m == nil {
			t.Fatalf("no metric %s", name)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return int64(v)
	}
	return value("restored_local_bytes_total"), value("restored_storage_bytes_total"), value("local_copies_damaged_total")
}

// damageCopies changes a byte in the middle of every local copy, and leaves alone what is linked to it.
func damageCopies(t *testing.T, dir string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil || len(data) == 0 {
			return err
		}
		for i := range data {
			data[i] ^= 1
		}
		n++
		if err := os.Remove(file); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o600)
	})
	if err != nil || n == 0 {
		t.Fatalf("%d local copies: %v", n, err)
	}
}
