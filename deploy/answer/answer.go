// Package answer checks the output of the flights job against a count that is made another way: a plain map over the same rows, with nothing
// of Weir in it.
//
// Owns: what the right answer is.
//
// Promises: an origin that is missing, wrong, counted twice or invented is named, and so is output that was written but never committed.
//
// Goroutines: none.
//
// Not here: running the job (package harness, and the demo and the test that use both).
//
// Start at: answer.go.
package answer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/harness/reference"
)

// header is the first line of every part file.
const header = "origin,flights,delay_sum,delay_min,delay_max"

// Answer is the rows that the output must have, sorted.
type Answer struct {
	Rows    []string
	Flights int64 // rows of the input
}

type delays struct{ flights, sum, min, max int64 }

// Count counts the flights of a CSV file by their origin.
func Count(path string) (Answer, error) {
	byOrigin := map[string]delays{}
	if err := eachFlight(path, func(origin string, delay int64) {
		d, seen := byOrigin[origin]
		if !seen {
			d.min, d.max = delay, delay
		}
		byOrigin[origin] = delays{d.flights + 1, d.sum + delay, min(d.min, delay), max(d.max, delay)}
	}); err != nil {
		return Answer{}, err
	}
	var a Answer
	for origin, d := range byOrigin {
		a.Rows = append(a.Rows, fmt.Sprintf("%s,%d,%d,%d,%d", origin, d.flights, d.sum, d.min, d.max))
		a.Flights += d.flights
	}
	slices.Sort(a.Rows)
	return a, nil
}

func eachFlight(path string, f func(origin string, delay int64)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // was only read
	in := csv.NewReader(file)
	columns, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: header: %w", path, err)
	}
	origin, delay := slices.Index(columns, "origin"), slices.Index(columns, "delay")
	if origin < 0 || delay < 0 {
		return fmt.Errorf("%s: the columns are %q: origin and delay are needed", path, columns)
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		minutes, err := strconv.ParseInt(row[delay], 10, 64)
		if err != nil {
			line, _ := in.FieldPos(delay)
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
		f(row[origin], minutes)
	}
}

// shown is how many wrong rows an error names.
const shown = 3

// Check compares the final files of an output folder with the answer.
func (a Answer) Check(output string) error {
	got, err := reference.OutputRows(output, header)
	if err != nil {
		return err
	}
	missing, invented := without(a.Rows, got), without(got, a.Rows)
	if len(missing)+len(invented) == 0 {
		return nil
	}
	return fmt.Errorf("the output is wrong: %d rows are missing (%s), %d rows should not be there (%s)",
		len(missing), some(missing), len(invented), some(invented))
}

// without is what a has more of than b.
func without(a, b []string) []string {
	count := map[string]int{}
	for _, row := range b {
		count[row]++
	}
	var out []string
	for _, row := range a {
		if count[row]--; count[row] < 0 {
			out = append(out, row)
		}
	}
	return out
}

func some(rows []string) string {
	switch {
	case len(rows) == 0:
		return "none"
	case len(rows) > shown:
		return strings.Join(rows[:shown], "; ") + "; ..."
	}
	return strings.Join(rows, "; ")
}
