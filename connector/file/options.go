package file

import (
	"errors"
	"fmt"
)

// Limits of the source.
const (
	// DefaultMaxLine is the longest line in bytes, unless MaxLine says otherwise.
	DefaultMaxLine = 1 << 20
	// MinSplitSize is the smallest default size of a split in bytes: below it, opening files costs more than reading them.
	MinSplitSize = 1 << 20
	// MaxSplits is how many splits one source may have: each is an entry in every checkpoint.
	MaxSplits = 1 << 16
	// splitsPerSubtask is how many splits of plain files a subtask gets when no size is set: several, so that slow subtasks and a later,
	// higher parallelism still share the work.
	splitsPerSubtask = 4
)

// Option changes how a source reads.
type Option func(*options)

type options struct {
	splitSize    int64
	splitSizeSet bool // else by parallelism
	maxLine      int
	rate         int64 // records per second and subtask, 0: unlimited
	multiLine    bool
	backlog      bool // is reported
	malformed    Malformed
}

// Malformed says what a source does with a row that it cannot read.
type Malformed struct {
	action action
	path   string
}

type action uint8

const (
	actionFail action = iota
	actionSkip
	actionPark
)

// What happens to malformed rows; the third choice is Park.
var (
	// Fail fails the job with the place of the row and what is wrong with it. It is the default.
	Fail = Malformed{action: actionFail}
	// Skip leaves the row out.
	Skip = Malformed{action: actionSkip}
)

// Park leaves the row out and appends it to the file at path: its place (file:line:column), what is wrong and the row, separated by tabs. Several
// subtasks may share the file. Parking is at-least-once: a row that is read again after a failure is parked again, as exactly the same text,
// so that "sort -u" removes the copies.
func Park(path string) Malformed { return Malformed{action: actionPark, path: path} }

// OnMalformed chooses what happens to rows that cannot be read: Fail, Skip or Park.
func OnMalformed(m Malformed) Option { return func(o *options) { o.malformed = m } }

// SplitSize sets the size in bytes of the splits of plain files. The default shares the input between the subtasks, in pieces of at least
// MinSplitSize.
func SplitSize(bytes int64) Option {
	return func(o *options) { o.splitSize, o.splitSizeSet = bytes, true }
}

// MaxLine sets the longest line (with MultiLine: row) in bytes. A longer one is malformed.
func MaxLine(bytes int) Option { return func(o *options) { o.maxLine = bytes } }

// Rate limits each subtask to a number of records per second; 0 is unlimited.
func Rate(recordsPerSecond int) Option { return func(o *options) { o.rate = int64(recordsPerSecond) } }

// ReportBacklog makes each subtask say that it works off a backlog while splits remain that it has not begun; with the last one the backlog is
// done. See stream.BacklogReporter.
func ReportBacklog() Option { return func(o *options) { o.backlog = true } }

// MultiLine allows line breaks in quoted CSV fields. Where such a file may be cut is known only after reading it, so each file is one split.
func MultiLine() Option { return func(o *options) { o.multiLine = true } }

func newOptions(opts []Option) options {
	o := options{maxLine: DefaultMaxLine}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func (o options) validate() error {
	switch {
	case o.splitSizeSet && o.splitSize < 1:
		return fmt.Errorf("file.SplitSize(%d) must be positive", o.splitSize)
	case o.maxLine < 1:
		return fmt.Errorf("file.MaxLine(%d) must be positive", o.maxLine)
	case o.rate < 0:
		return fmt.Errorf("file.Rate(%d) must not be negative", o.rate)
	case o.malformed.action == actionPark && o.malformed.path == "":
		return errors.New("file.Park needs the path of the file for malformed rows")
	}
	return nil
}
