package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
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

// formatBytes is a size with a binary unit.
func formatBytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, units := float64(n), "KMGTPE"
	i := -1
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// formatDuration is a duration with about three digits, which is what people can use.
func formatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + formatDuration(-d)
	case d >= time.Hour:
		return d.Round(time.Minute).String()[:len(d.Round(time.Minute).String())-2]
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// formatAge is how long ago t is.
func formatAge(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatDuration(max(0, now.Sub(t)).Truncate(time.Second)) + " ago"
}

// formatCount is a number with thousands separated.
func formatCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted is "1 restart", "2 restarts".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
