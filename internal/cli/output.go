package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// choice is a flag that takes one of some words.
type choice struct {
	value string
	of    []string
}

// choiceOf makes a choice with the first word as the default.
func choiceOf(words ...string) choice { return choice{words[0], words} }

// String implements pflag.Value.
func (c *choice) String() string { return c.value }

// Type implements pflag.Value: it is shown in the help.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set implements pflag.Value.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("it can be %s", strings.Join(c.of, " or "))
	}
	c.value = s
	return nil
}

// line writes a line. An output that cannot be written to is nobody's business: the command has done its work.
func line(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table collects rows and writes them in aligned columns.
type table struct{ rows [][]string }

func newTable(header ...string) *table { return &table{[][]string{header}} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	var text strings.Builder
	tw := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = strings.NewReplacer("\t", " ", "\n", "; ", "\r", "").Replace(cell)
		}
		line(tw, "%s", strings.Join(row, "\t"))
	}
	_ = tw.Flush() // a Builder takes everything
	for l := range strings.Lines(text.String()) {
		line(w, "%s", strings.TrimRight(l, " \n"))
	}
}
