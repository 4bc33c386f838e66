// Package reference finds the reference data and compares output with it, for tests.
//
// Owns: where the data is: in shared/data beside the checkout, or above it.
//
// Promises: a test whose data is not there is skipped with a message; output is compared whole.
//
// Goroutines: none.
//
// Not here: the data itself, which is not part of the project.
//
// Start at: data.go.
package reference

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Data returns the path of a file of the reference data, or skips the test with a message when the data is not beside the checkout.
func Data(t *testing.T, name string) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		p := filepath.Join(dir, "shared", "data", name)
		if _, err := os.Stat(p); err == nil {
			return p
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("reference data %s is not beside the checkout", name)
		}
	}
}

// DiffRows compares the rows in the final files of an output directory with those of an expected file, as multisets and without header. It
// returns "" or what differs first; output that is not final counts as a difference.
func DiffRows(t *testing.T, output, expected, header string) string {
	t.Helper()
	got, err := OutputRows(output, header)
	if err != nil {
		return err.Error()
	}
	want, err := fileRows(expected, header)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("row %d is %q, want %q (%d rows, want %d)", i, got[i], want[i], len(got), len(want))
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// OutputRows returns the sorted rows of all files in an output directory without their headers. A file that is not final is an error.
func OutputRows(dir, header string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var rows []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".inprogress") || strings.Contains(e.Name(), ".pending") {
			return nil, fmt.Errorf("output %s is not final", e.Name())
		}
		more, err := fileRows(filepath.Join(dir, e.Name()), header)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	slices.Sort(rows)
	return rows, nil
}

func fileRows(name, header string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var rows []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if line := lines.Text(); header == "" || line != header {
			rows = append(rows, line)
		}
	}
	return rows, lines.Err()
}

// DiffUpdates compares rows "key,number" of an output of updates with the final ones: every key must have each number up to its final one, once.
func DiffUpdates(t *testing.T, output, expected string) string {
	t.Helper()
	got, err := OutputRows(output, "")
	if err != nil {
		return err.Error()
	}
	final, err := fileRows(expected, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, row := range final {
		key, n := update(t, row)
		want[key] = n
	}
	for i, row := range got {
		if i > 0 && row == got[i-1] {
			return fmt.Sprintf("row %q is there twice", row)
		}
	}
	seen := map[string]int{}
	for _, row := range got {
		key, n := update(t, row)
		if n < 1 || n > want[key] {
			return fmt.Sprintf("row %q, the final number is %d", row, want[key])
		}
		seen[key]++
	}
	for key, n := range want {
		if seen[key] != n {
			return fmt.Sprintf("%d rows of %q, want %d", seen[key], key, n)
		}
	}
	return ""
}

func update(t *testing.T, row string) (key string, n int) {
	t.Helper()
	key, number, _ := strings.Cut(row, ",")
	n, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("row %q: %v", row, err)
	}
	return key, n
}
