package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
)

// names lists a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func unfinished(t testing.TB, dir string) []string {
	return slices.DeleteFunc(names(t, dir), func(n string) bool {
		return !strings.HasSuffix(n, ".inprogress") && !strings.HasSuffix(n, ".pending")
	})
}

// visible reads back what is final in a directory.
func visible[T any](t testing.TB, dir string, src stream.Source[T]) []T {
	t.Helper()
	if len(names(t, dir)) == len(unfinished(t, dir)) {
		return nil // reading a directory without files is an error
	}
	return mustReadAll(t, src, 1)
}

func TestExactlyOnceCSV_OverCrashes_ShowsWhatIsDurable(t *testing.T) {
	for seed := range uint64(10) {
		dir := filepath.Join(t.TempDir(), "made", "by the sink")
		connectortest.Sink(t, seed, 60, connectortest.SinkTest[pair]{
			New:       func() stream.Sink[pair] { return file.ExactlyOnceCSV[pair](dir) },
			Record:    func(i int) pair { return pair{fmt.Sprintf(`record, "%d"`, i), int64(i)} },
			Visible:   func() []pair { return visible(t, dir, file.CSV[pair](dir)) },
			Leftovers: func() []string { return unfinished(t, dir) },
		})
	}
}

func TestExactlyOnceLines_OverCrashes_ShowsWhatIsDurable(t *testing.T) {
	for seed := range uint64(4) {
		dir := t.TempDir()
		connectortest.Sink(t, seed, 60, connectortest.SinkTest[string]{
			New:       func() stream.Sink[string] { return file.ExactlyOnceLines(dir) },
			Record:    func(i int) string { return fmt.Sprintf("record %d", i) },
			Visible:   func() []string { return visible(t, dir, file.Lines(dir)) },
			Leftovers: func() []string { return unfinished(t, dir) },
		})
	}
}

// committer is what the exactly-once writers are.
type committer[T any] interface {
	stream.Writer[T]
	stream.Committer
}

func openWriter[T any](t testing.TB, s stream.Sink[T], env stream.SinkEnv) committer[T] {
	t.Helper()
	if env.JobID == "" {
		env.JobID = "ab12"
	}
	env.Operator, env.Parallelism = "out", max(env.Parallelism, 1)
	w, err := s.Open(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w.(committer[T])
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func prepare[T any](t testing.TB, w committer[T]) stream.Prepared {
	t.Helper()
	p, err := w.Prepare(1)
	must(t, err)
	return p
}

// What no checkpoint holds is of no use to anybody when the task ends.
func TestSink_Close_RemovesTheUnfinishedFile(t *testing.T) {
	dir := t.TempDir()
	w := openWriter(t, file.ExactlyOnceCSV[pair](dir), stream.SinkEnv{Subtask: 3, Attempt: 7, Parallelism: 4})
	must(t, w.Write(stream.NoTimestamp, pair{"a", 1}))
	prepare(t, w)
	must(t, w.Write(stream.NoTimestamp, pair{"b", 2}))
	must(t, w.Close())
	equal(t, "closed", names(t, dir), []string{"part-ab12-out-3-7-1.csv.pending"})
	w = openWriter(t, file.ExactlyOnceCSV[pair](dir), stream.SinkEnv{Subtask: 0, Attempt: 8, Parallelism: 4})
	must(t, w.Write(stream.NoTimestamp, pair{"c", 3}))
	must(t, os.Remove(filepath.Join(dir, "part-ab12-out-0-8-1.csv.inprogress"))) // by a newer attempt
	must(t, w.Close())
}

func TestSink_NamesTellTheStepOfAFile(t *testing.T) {
	dir := t.TempDir()
	w := openWriter(t, file.ExactlyOnceCSV[pair](dir), stream.SinkEnv{Subtask: 3, Attempt: 7, Parallelism: 4})
	if p := prepare(t, w); p.Transaction != nil || len(names(t, dir)) != 0 {
		t.Errorf("without records: transaction %q, files %v", p.Transaction, names(t, dir))
	}
	must(t, w.Write(stream.NoTimestamp, pair{"a", 1}))
	equal(t, "written", names(t, dir), []string{"part-ab12-out-3-7-1.csv.inprogress"})
	p := prepare(t, w)
	equal(t, "prepared", names(t, dir), []string{"part-ab12-out-3-7-1.csv.pending"})
	must(t, p.Persist())
	must(t, w.Commit(p.Transaction))
	equal(t, "committed", names(t, dir), []string{"part-ab12-out-3-7-1.csv"})
	must(t, w.Commit(p.Transaction))
	must(t, w.Write(stream.NoTimestamp, pair{"b", 2}))
	p = prepare(t, w)
	must(t, p.Persist())
	must(t, w.Commit(p.Transaction))
	equal(t, "committed twice", names(t, dir), []string{"part-ab12-out-3-7-1.csv", "part-ab12-out-3-7-2.csv"})
	data, err := os.ReadFile(filepath.Join(dir, "part-ab12-out-3-7-2.csv"))
	must(t, err)
	equal(t, "contents", []string{string(data)}, []string{"name,n\nb,2\n"})
}

func TestSink_TheSameNumberAgain_ReplacesNoFinalFile(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		w := openWriter(t, file.ExactlyOnceLines(dir), stream.SinkEnv{})
		must(t, w.Write(stream.NoTimestamp, fmt.Sprint(i)))
		must(t, w.Commit(prepare(t, w).Transaction))
	}
	equal(t, "lines", mustReadAll(t, file.Lines(dir), 1), []string{"0", "1", "2"})
}

func TestRecover_RemovesOnlyItsOwnLeftovers(t *testing.T) {
	dir := t.TempDir()
	old := []string{"part-ab12-out-0-1-1.csv.inprogress", "part-ab12-out-0-0-9.csv.pending", "part-ab12-out-3-1-1.csv.inprogress"}
	others := []string{
		"part-ab12-out-0-2-1.csv.pending",       // this attempt's
		"part-ab12-out-0-3-1.csv.inprogress",    // of a later attempt: this one is the stale one
		"part-ab12-out-1-1-1.csv.inprogress",    // another subtask's
		"part-ab12-out-4-1-1.csv.pending",       // subtask 1 cleans up after it
		"part-ab12-out-0-0-1-1.csv.inprogress",  // of the operator out-0
		"part-ab12-other-0-1-1.csv.inprogress",  // another operator's
		"part-ab13-out-0-1-1.csv.inprogress",    // another job's
		"part-ab12-out-0-1-1.txt.pending",       // not of this sink
		"part-ab12-out-x-1-1.csv.pending",       // not of any
		"part-ab12-out-0-1-3.csv",               // final
		"mine.inprogress", "part-ab12-out-.csv", // somebody's
	}
	for _, n := range slices.Concat(old, others) {
		put(t, dir, n, nil)
	}
	w := openWriter(t, file.ExactlyOnceCSV[pair](dir), stream.SinkEnv{Attempt: 2, Parallelism: 3})
	must(t, w.Recover())
	slices.Sort(others)
	if got := names(t, dir); slices.Contains(got, old[0]) || !slices.Contains(got, old[1]) {
		t.Errorf("after Recover: %v", got) // the pending one may be another subtask's to commit
	}
	prepare(t, w)
	equal(t, "after the first barrier", names(t, dir), others)
}

func TestCommit_OfLostOutput_IsAPermanentError(t *testing.T) {
	prepared := func(dir string) (committer[string], []byte, string) {
		w := openWriter(t, file.ExactlyOnceLines(dir), stream.SinkEnv{})
		must(t, w.Write(stream.NoTimestamp, "x"))
		return w, prepare(t, w).Transaction, filepath.Join(dir, "part-ab12-out-0-0-1.txt")
	}
	for what, c := range map[string]struct {
		do   func(final string)
		want string
	}{
		"pending removed":   {func(f string) { must(t, os.Remove(f+".pending")) }, "output is lost: neither"},
		"pending cut":       {func(f string) { must(t, os.Truncate(f+".pending", 1)) }, "has 1 bytes, the checkpoint prepared 2"},
		"final in the way":  {func(f string) { must(t, os.WriteFile(f, nil, 0o644)) }, "is there already"},
		"another final":     {func(f string) { must(t, os.Rename(f+".pending", f)); must(t, os.Truncate(f, 0)) }, "it was changed after the commit"},
		"directory removed": {func(f string) { must(t, os.RemoveAll(filepath.Dir(f))) }, "output is lost"},
	} {
		w, transaction, final := prepared(t.TempDir())
		c.do(final)
		if err := w.Commit(transaction); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), final) || !stream.IsPermanent(err) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestPersist_OnceFailed_FailsAgain(t *testing.T) {
	dir := t.TempDir()
	w := openWriter(t, file.ExactlyOnceLines(dir), stream.SinkEnv{})
	must(t, w.Write(stream.NoTimestamp, "x"))
	p := prepare(t, w)
	pending := filepath.Join(dir, names(t, dir)[0])
	must(t, os.Rename(pending, pending+"away"))
	if p.Persist() == nil {
		t.Fatal("a file that is not there was persisted")
	}
	must(t, os.Rename(pending+"away", pending))
	if p.Persist() == nil {
		t.Error("the second sync hides that the first one failed")
	}
}

func TestCheck_OfADirectoryThatCannotBe_NamesIt(t *testing.T) {
	dir := t.TempDir()
	plain := put(t, dir, "plain", nil)
	for path, want := range map[string]string{
		plain:                       "output directory " + regexp.QuoteMeta(plain) + " cannot be made: .*not a directory",
		filepath.Join(plain, "sub"): "output directory .*/plain/sub cannot be made: .*not a directory",
		"":                          "has no name",
	} {
		err := file.ExactlyOnceLines(path).(stream.Checker).Check(t.Context())
		if err == nil || !regexp.MustCompile("^.*"+want+"$").MatchString(err.Error()) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	fresh := filepath.Join(dir, "a", "b")
	must(t, file.ExactlyOnceLines(fresh).(stream.Checker).Check(t.Context()))
	if left := names(t, fresh); len(left) > 0 {
		t.Errorf("the check left %v", left)
	}
	if err := file.ExactlyOnceCSV[int](fresh).(stream.Checker).Check(t.Context()); err == nil {
		t.Error("rows that are numbers passed the check")
	}
}

func TestExactlyOnceLines_RefusesLineBreaks(t *testing.T) {
	w := openWriter(t, file.ExactlyOnceLines(t.TempDir()), stream.SinkEnv{})
	for _, s := range []string{"a\nb", "a\r"} {
		if err := w.Write(stream.NoTimestamp, s); err == nil || !stream.IsPermanent(err) {
			t.Errorf("%q: error %v", s, err)
		}
	}
}

func TestExactlyOnceCSV_IsReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	rows := []everything{
		{},
		{Text: " ,\"\r\n\ufeff", I: -1, I8: -8, I16: -16, I32: -32, I64: -64, U: 1, U8: 8, U16: 16, U32: 32, U64: 1 << 63, F32: 0.1, F64: 1e-300, B: true,
			At: time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600)), For: -time.Hour + 1, Kind: "\ufeffk\t"},
	}
	w := openWriter(t, file.ExactlyOnceCSV[everything](dir), stream.SinkEnv{})
	for _, r := range rows {
		must(t, w.Write(stream.NoTimestamp, r))
	}
	must(t, w.Commit(prepare(t, w).Transaction))
	got := mustReadAll(t, file.CSV[everything](dir, file.MultiLine()), 1)
	rows[1].At = rows[1].At.UTC()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", rows) {
		t.Errorf("read %+v\nwrote %+v", got, rows)
	}
}

func TestExactlyOnceCSV_OneEmptyCell_IsARow(t *testing.T) {
	type single struct{ S string }
	dir := t.TempDir()
	w := openWriter(t, file.ExactlyOnceCSV[single](dir), stream.SinkEnv{})
	for _, s := range []string{"", "a", ""} {
		must(t, w.Write(stream.NoTimestamp, single{s}))
	}
	must(t, w.Commit(prepare(t, w).Transaction))
	equal(t, "rows", mustReadAll(t, file.CSV[single](dir), 1), []single{{""}, {"a"}, {""}})
}

func TestWithoutHeader(t *testing.T) {
	dir := t.TempDir()
	w := openWriter(t, file.ExactlyOnceCSV[pair](dir, file.WithoutHeader()), stream.SinkEnv{})
	must(t, w.Write(stream.NoTimestamp, pair{"a", 1}))
	must(t, w.Commit(prepare(t, w).Transaction))
	equal(t, "lines", mustReadAll(t, file.Lines(dir), 1), []string{"a,1"})
}
