package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be the processes that the benchmark starts, as the program itself is.
func TestMain(m *testing.M) {
	if code, ok := part(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func TestBench_MeasuresEverything(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-records", "20000", "-rounds", "1", "-kills", "2"}, &out); err != nil {
		t.Fatalf("%v; it printed:\n%s", err, &out)
	}
	for _, want := range []string{"idle checkpoint", "kill -9", "in one task", "in one process", "between two processes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing about %q in:\n%s", want, &out)
		}
	}
}
