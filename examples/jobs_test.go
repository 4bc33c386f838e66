package examples_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/examples/flights"
	"github.com/weirstream/weir/examples/wordcount"
	"github.com/weirstream/weir/stream"
)

const sample = "data/flights-20k.csv"

// shared finds a file of the reference data beside the repository, or skips.
func shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	for {
		path := filepath.Join(dir, "shared", "data", name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("the reference data (%s) is not there", name)
		}
		dir = filepath.Dir(dir)
	}
}

// rows reads a CSV file, gzip or not, without its header, which must be header; "" is for files without one.
func rows(t testing.TB, path, header string) []string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		r, err = gzip.NewReader(f)
		must(t, err)
	}
	var lines []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	must(t, s.Err())
	if header == "" {
		return lines
	}
	if len(lines) == 0 || lines[0] != header {
		t.Fatalf("%s begins with %q, want the header %s", path, lines[:min(len(lines), 1)], header)
	}
	return lines[1:]
}

// output reads all files of an output directory; nothing unfinished may be there.
func output(t testing.TB, dir, header string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		if ok, _ := filepath.Match("part-ab12-out-0-*.csv", e.Name()); !ok {
			t.Errorf("there is a file %s in the output", e.Name())
		}
		all = append(all, rows(t, filepath.Join(dir, e.Name()), header)...)
	}
	return all
}

const flightsHeader = "origin,flights,delay_sum,delay_min,delay_max"

// countedAnotherWay is the answer for flights in the dumbest way.
func countedAnotherWay(t testing.TB, path string) []string {
	t.Helper()
	type stats struct{ n, sum, low, high int }
	byOrigin := map[string]stats{}
	for _, row := range rows(t, path, "time,origin,destination,delay,distance") {
		cells := strings.Split(row, ",")
		delay, err := strconv.Atoi(cells[3])
		must(t, err)
		s, ok := byOrigin[cells[1]]
		if !ok {
			s.low, s.high = delay, delay
		}
		byOrigin[cells[1]] = stats{s.n + 1, s.sum + delay, min(s.low, delay), max(s.high, delay)}
	}
	var out []string
	for origin, s := range byOrigin {
		out = append(out, fmt.Sprintf("%s,%d,%d,%d,%d", origin, s.n, s.sum, s.low, s.high))
	}
	return out
}

func TestFlights_OnTheSample_IsExact_WhateverCrashes(t *testing.T) {
	want := countedAnotherWay(t, sample)
	for seed := range uint64(5) {
		dir := t.TempDir()
		runWithCrashes(t, flights.Definition(), map[string]string{"input": sample, "output": dir}, int(seed), seed)
		sameSet(t, output(t, dir, flightsHeader), want)
	}
}

func TestFlights_OnTheReferenceData_IsAsExpected(t *testing.T) {
	dir := t.TempDir()
	runWithCrashes(t, flights.Definition(), map[string]string{"input": shared(t, "flights-100k.csv.gz"), "output": dir}, 3, 1)
	sameSet(t, output(t, dir, flightsHeader), rows(t, shared(t, "expected/flights-100k-by-origin.csv.gz"), flightsHeader))
}

func TestFlights_WithUpdates_EndWithTheAnswer(t *testing.T) {
	dir := t.TempDir()
	runWithCrashes(t, flights.Definition(), map[string]string{"input": sample, "output": dir, "emit": "updates"}, 4, 9)
	updates := output(t, dir, flightsHeader)
	if len(updates) != 20_000 {
		t.Errorf("%d updates of 20,000 flights", len(updates))
	}
	last := map[string]string{}
	most := map[string]int{}
	for _, row := range updates {
		cells := strings.Split(row, ",")
		n, err := strconv.Atoi(cells[1])
		must(t, err)
		if n > most[cells[0]] {
			most[cells[0]], last[cells[0]] = n, row
		}
	}
	var got []string
	for _, row := range last {
		got = append(got, row)
	}
	sameSet(t, got, countedAnotherWay(t, sample))
}

func TestFlights_MalformedRows_GoWhereTheJobSays(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte("origin,delay\nA,1\nA,late\nA,3\n"), 0o644))
	for _, choice := range []string{"skip", "park"} {
		out := filepath.Join(dir, choice)
		params := map[string]string{"input": input, "output": out, "malformed": choice, "parked": filepath.Join(dir, "parked")}
		runWithCrashes(t, flights.Definition(), params, 0, 0)
		sameSet(t, output(t, out, flightsHeader), []string{"A,2,4,1,3"})
	}
	parked, err := os.ReadFile(filepath.Join(dir, "parked"))
	must(t, err)
	if want := input + ":3:3\tdelay: \"late\" is not a whole number\tA,late\n"; string(parked) != want {
		t.Errorf("parked %q, want %q", parked, want)
	}
	nodes, err := graph(t, flights.Definition(), map[string]string{"input": input, "output": dir})
	must(t, err)
	splits, err := nodes[0].Splits(t.Context(), 1)
	must(t, err)
	c := build(t, nodes, 0, &snapshot{splits: splits}, false)
	defer c.close(t)
	if _, err := c.links[0].Source.Poll(10); err == nil || !stream.IsPermanent(err) || !strings.Contains(err.Error(), "operator flights: "+input+":3:3: delay") {
		t.Errorf("error %v", err)
	}
}

func TestJobs_WithWrongParameters_SayWhatIsWrong(t *testing.T) {
	both := func(more ...string) map[string]string {
		m := map[string]string{"input": sample, "output": "out"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, c := range []struct {
		job    stream.Definition
		params map[string]string
		want   string
	}{
		{flights.Definition(), nil, `needs parameter "input"`},
		{flights.Definition(), map[string]string{"input": "x"}, `needs parameter "output"`},
		{flights.Definition(), both("rate", "fast"), `rate="fast"`},
		{flights.Definition(), both("emit", "never"), `emit="never"`},
		{flights.Definition(), both("malformed", "x"), `malformed="x"`},
		{flights.Definition(), both("malformed", "park"), "needs the parameter parked"},
		{flights.Definition(), both("speed", "1"), `no parameter "speed"; it has: backlog (default false), emit (default end), input, lease (default false), malformed (default fail), output, parked, rate (default 0)`},
		{wordcount.Definition(), nil, `needs parameter "input"`},
		{wordcount.Definition(), both("emit", "never"), `emit="never"`},
	} {
		if _, err := graph(t, c.job, c.params); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %v: error %v, want %s", c.job.Name, c.params, err, c.want)
		}
	}
	nodes, err := graph(t, flights.Definition(), both("input", "no/such/file.csv"))
	must(t, err)
	if _, err := nodes[0].Splits(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "no/such/file.csv") {
		t.Errorf("missing input: error %v", err)
	}
}

func TestWordcount_OnTheReferenceData_IsAsExpected(t *testing.T) {
	dir := t.TempDir()
	runWithCrashes(t, wordcount.Definition(), map[string]string{"input": shared(t, "kjv.txt.gz"), "output": dir}, 3, 1)
	sameSet(t, output(t, dir, ""), rows(t, shared(t, "expected/kjv-wordcount.csv.gz"), ""))
}

func TestWordcount_WordsAreRunsOfLetters(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"12 -- \n\n":                 nil,
		"The the THE":                {"the,3"},
		"don't a1b ä-z[Z`z@z{":       {"don,1", "t,1", "a,1", "b,1", "z,4"},
		"one\ntwo\r\none":            {"one,2", "two,1"},
		"no line end, no last space": {"no,2", "line,1", "end,1", "last,1", "space,1"},
	} {
		dir := t.TempDir()
		input := filepath.Join(dir, "in.txt")
		must(t, os.WriteFile(input, []byte(text), 0o644))
		out := filepath.Join(dir, "out")
		runWithCrashes(t, wordcount.Definition(), map[string]string{"input": input, "output": out}, 0, 0)
		sameSet(t, output(t, out, ""), want)
	}
}

func TestJobs_AreListedWithNameAndDescription(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range examples.Jobs() {
		if d.Name == "" || d.Description == "" || seen[d.Name] {
			t.Errorf("job %q: %q", d.Name, d.Description)
		}
		seen[d.Name] = true
	}
	if !seen["flights"] || !seen["wordcount"] {
		t.Errorf("jobs: %v", seen)
	}
}
