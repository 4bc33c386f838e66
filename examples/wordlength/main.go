// Command wordlength is a job of one's own: how many words of each length a text has.
package main

import (
	"strings"

	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
	"github.com/weirstream/weir/stream/app"
)

type count struct {
	Length int `csv:"length"`
	Words  int `csv:"words"`
}

func wordLength(j *stream.Job) error {
	lines := stream.From(j, "lines", file.Lines(j.Param("input")))
	words := stream.FlatMap(lines, "words", func(line string, emit func(count) error) error {
		for _, word := range strings.Fields(line) {
			if err := emit(count{len(word), 1}); err != nil {
				return err
			}
		}
		return nil
	})
	byLength := stream.KeyBy(words, func(c count) int { return c.Length })
	counts := stream.Reduce(byLength, "counts", func(a, b count) count { return count{a.Length, a.Words + b.Words} }, stream.EmitAtEnd)
	stream.To(counts, "out", file.ExactlyOnceCSV[count](j.Param("output")))
	return nil
}

func main() { app.Main(app.Job("wordlength", wordLength)) }
