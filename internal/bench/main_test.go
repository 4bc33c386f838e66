package main

import (
	"os"
	"strings"
	"testing"
	"time"
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
	if err := run(t.Context(), []string{"-records", "20000", "-rounds", "1", "-kills", "2", "-checkpoints", "5", "-sustained", "2s",
		"-keys", "20000", "-durables", "2", "-turn", "1s", "-rows", "20000"}, &out); err != nil {
		t.Fatalf("%v; it printed:\n%s", err, &out)
	}
	wanted := append([]string{"one durable rename", "every 100ms for 2s", " 0 failed"}, phaseNames...)
	for _, want := range append(wanted, "idle checkpoint", "durable checkpoint, 20 K keys", "record latency", "loss", "kill -9", "own copies", "from the checkpoint directory", "rescale 2 -> 4", "rescale 1 -> 3", "in one task", "in one process", "between two processes") {
		if !strings.Contains(out.String(), want) {
			t.Errorf("nothing about %q in:\n%s", want, &out)
		}
	}
}

func TestBench_OnlyWhatIsKnown(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-only", "nothing"}, &out); err == nil || !strings.Contains(err.Error(), "-only nothing is not known: checkpoints, sustained") {
		t.Errorf("error is %v", err)
	}
}

func TestBucketOf_IsTheBucketOfItsAge(t *testing.T) {
	for age := int64(1); age < 1<<38; age += 1 + age/7 {
		b := bucketOf(age)
		if upper := int64(ageOf(b)); upper < age || upper > age+age/4 {
			t.Fatalf("age %d is in bucket %d, which ends at %d", age, b, upper)
		}
		if b > 0 && int64(ageOf(b-1)) > age {
			t.Fatalf("age %d is in bucket %d, but the one before ends at %d", age, b, ageOf(b-1))
		}
	}
}

func TestPercentile(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3}
	for percent, want := range map[int]time.Duration{0: 1, 50: 3, 99: 4, 100: 5} {
		if got := percentile(values, percent); got != want {
			t.Errorf("percentile %d is %d, want %d", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
