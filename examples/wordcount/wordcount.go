// Package wordcount is an example job: how often each word is in a text.
//
// Owns: the job "wordcount". A word is a run of the letters a-z of the text in lower case. Parameters:
//
//	input   text files: a file, directory, glob, or several separated by commas
//	output  the directory for CSV files with the columns word and count, without a header
//	emit    end: each word once, at the end of input (the default); updates: a word's new count after each time it was seen
//	rate    lines per second and source subtask, 0 for no limit (the default)
//
// Goroutines: none.
//
// Start at: Build.
package wordcount

import (
	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
)

// Count is the result for one word.
type Count struct {
	Word  string `csv:"word"`
	Count int64  `csv:"count"`
}

// Definition is the job under its name.
func Definition() stream.Definition {
	return stream.Define("wordcount", "how often each word (a run of a-z, in lower case) is in a text", Build)
}

// Build connects the streams of the job.
func Build(j *stream.Job) error {
	when := stream.EmitAtEnd
	if j.ChoiceParam("emit", "end", "updates") == "updates" {
		when = stream.EmitUpdates
	}
	lines := stream.From(j, "lines", file.Lines(j.Param("input"), file.Rate(j.IntParam("rate", 0))))
	words := stream.FlatMap(lines, "words", split)
	byWord := stream.KeyBy(words, func(w string) string { return w })
	counts := stream.Aggregate(byWord, "counts", counter{}, when)
	stream.To(counts, "out", file.ExactlyOnceCSV[Count](j.Param("output"), file.WithoutHeader()))
	return nil
}

// split emits the words of a line. Each is a copy: a word that is kept in state must not keep its line.
func split(line string, emit func(string) error) error {
	var word []byte
	for i := range len(line) + 1 {
		if i < len(line) {
			c := line[i] | 0x20 // lower case, of letters
			if 'a' <= c && c <= 'z' {
				word = append(word, c)
				continue
			}
		}
		if len(word) == 0 {
			continue
		}
		if err := emit(string(word)); err != nil {
			return err
		}
		word = word[:0]
	}
	return nil
}

// counter counts records.
type counter struct{}

func (counter) New() int64 { return 0 }

func (counter) Add(n int64, _ string) int64 { return n + 1 }

func (counter) Result(word string, n int64) Count { return Count{word, n} }
