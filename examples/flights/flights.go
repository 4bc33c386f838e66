// Package flights is an example job: statistics of the delays of flights by their origin.
//
// Owns: the job "flights". Its parameters:
//
//	input      CSV files with the columns origin and delay: a file, directory, glob, or several separated by commas
//	output     the directory for CSV files with the columns origin, flights, delay_sum, delay_min, delay_max
//	emit       end: each origin once, at the end of input (the default); updates: an origin's new row after each of its flights
//	rate       flights per second and source subtask, 0 for no limit (the default)
//	backlog    true: the source reports a backlog until it reads the last part of its input; see checkpoint-interval-during-backlog (default: false)
//	lease      true: the job keeps the output directory for itself, with a master hook; output must be absolute then (default: false)
//	malformed  what to do with rows that cannot be read: fail (the default), skip, or park
//	parked     the file for malformed rows, with malformed=park
//
// Goroutines: none.
//
// Start at: Build.
package flights

import (
	"errors"

	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
)

// Flight is what the job needs of a row of the input.
type Flight struct {
	Origin string `csv:"origin"`
	Delay  int64  `csv:"delay"` // minutes; negative: early
}

// Delays is the result for one origin, in minutes.
type Delays struct {
	Origin  string `csv:"origin"`
	Flights int64  `csv:"flights"`
	Sum     int64  `csv:"delay_sum"`
	Min     int64  `csv:"delay_min"`
	Max     int64  `csv:"delay_max"`
}

// Definition is the job under its name.
func Definition() stream.Definition {
	return stream.Define("flights", "number of flights, and sum, minimum and maximum of their delays, per origin", Build)
}

// Build connects the streams of the job.
func Build(j *stream.Job) error {
	options := []file.Option{file.Rate(j.IntParam("rate", 0)), file.OnMalformed(malformed(j))}
	if j.BoolParam("backlog", false) {
		options = append(options, file.ReportBacklog())
	}
	source := file.CSV[Flight](j.Param("input"), options...)
	when := stream.EmitAtEnd
	if j.ChoiceParam("emit", "end", "updates") == "updates" {
		when = stream.EmitUpdates
	}
	flights := stream.From(j, "flights", source)
	byOrigin := stream.KeyBy(flights, func(f Flight) string { return f.Origin })
	delays := stream.Aggregate(byOrigin, "delays", statistics{}, when)
	output := j.Param("output")
	stream.To(delays, "out", file.ExactlyOnceCSV[Delays](output))
	if j.BoolParam("lease", false) {
		stream.AddMasterHook(j, "lease", file.Lease(output))
	}
	return nil
}

func malformed(j *stream.Job) file.Malformed {
	choice, path := j.ChoiceParam("malformed", "fail", "skip", "park"), j.ParamOr("parked", "")
	switch {
	case choice == "skip":
		return file.Skip
	case choice == "park" && path == "":
		j.Fail(errors.New("malformed=park needs the parameter parked: the file for malformed rows"))
	case choice == "park":
		return file.Park(path)
	}
	return file.Fail
}

// statistics folds the delays of one origin.
type statistics struct{}

type delayStats struct {
	N, Sum, Min, Max int64
}

func (statistics) New() delayStats { return delayStats{} }

func (statistics) Add(acc delayStats, f Flight) delayStats {
	if acc.N == 0 {
		return delayStats{N: 1, Sum: f.Delay, Min: f.Delay, Max: f.Delay}
	}
	return delayStats{N: acc.N + 1, Sum: acc.Sum + f.Delay, Min: min(acc.Min, f.Delay), Max: max(acc.Max, f.Delay)}
}

func (statistics) Result(origin string, acc delayStats) Delays {
	return Delays{Origin: origin, Flights: acc.N, Sum: acc.Sum, Min: acc.Min, Max: acc.Max}
}
