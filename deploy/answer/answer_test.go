package answer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func right(t *testing.T) Answer {
	t.Helper()
	a, err := Count(write(t, t.TempDir(), "in.csv", "time,origin,destination,delay\n1,AAA,x,5\n2,BBB,x,-3\n3,AAA,x,-7\n"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCount_FoldsTheDelaysOfEachOrigin(t *testing.T) {
	a := right(t)
	if got, want := strings.Join(a.Rows, " "), "AAA,2,-2,-7,5 BBB,1,-3,-3,-3"; got != want || a.Flights != 3 {
		t.Errorf("%s from %d flights, want %s from 3", got, a.Flights, want)
	}
}

func TestCount_NamesTheLineOfABadRow(t *testing.T) {
	_, err := Count(write(t, t.TempDir(), "in.csv", "origin,delay\nAAA,5\nBBB,late\n"))
	if err == nil || !strings.Contains(err.Error(), "in.csv:3: ") {
		t.Errorf("%v, want an error that names line 3", err)
	}
	if _, err := Count(write(t, t.TempDir(), "in.csv", "from,delay\n")); err == nil {
		t.Error("a file without the column origin was counted")
	}
}

func TestCheck_JoinsPartFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "part-0.csv", header+"\nBBB,1,-3,-3,-3\n")
	write(t, dir, "part-1.csv", header+"\nAAA,2,-2,-7,5\n")
	if err := right(t).Check(dir); err != nil {
		t.Error(err)
	}
}

func TestCheck_NamesEachKindOfFault(t *testing.T) {
	const aaa, bbb = "AAA,2,-2,-7,5\n", "BBB,1,-3,-3,-3\n"
	for name, c := range map[string]struct{ file, rows, message string }{
		"wrong":         {"part-1.csv", "BBB,2,-3,-3,-3\n", "1 rows are missing (BBB,1,-3,-3,-3), 1 rows should not be there (BBB,2,"},
		"missing":       {"part-1.csv", "", "1 rows are missing (BBB,"},
		"twice":         {"part-1.csv", aaa + bbb, "1 rows should not be there (AAA,"},
		"invented":      {"part-1.csv", bbb + "CCC,1,1,1,1\n", "1 rows should not be there (CCC,"},
		"not committed": {"part-1.csv.pending", bbb, "not final"},
		"not finished":  {"part-1.csv.inprogress", bbb, "not final"},
	} {
		dir := t.TempDir()
		write(t, dir, "part-0.csv", header+"\n"+aaa)
		write(t, dir, c.file, header+"\n"+c.rows)
		if err := right(t).Check(dir); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.message)
		}
	}
}
