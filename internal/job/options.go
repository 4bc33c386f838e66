package job

import "time"

// Options are what a user may choose per submission; Normalize fills in the defaults.
type Options struct {
	Parallelism    int // 0: the job's own default, else 1
	MaxParallelism int
	// OperatorParallelism is that of single operators, by their ids, in the place of all else that says it.
	OperatorParallelism map[string]int `json:",omitempty"`
	Checkpoint          CheckpointOptions
	Restart             RestartOptions
	Exchange            ExchangeOptions
	State               StateOptions
}

// MaxConcurrentCheckpoints is the limit of CheckpointOptions.MaxConcurrent: a task writes no more snapshots at a time.
const MaxConcurrentCheckpoints = 4

// The number of checkpoints that statistics remember of a job, unless the job master is told otherwise, and the most that it can be told.
const (
	DefaultCheckpointHistory = 10
	MaxCheckpointHistory     = 1000
)

// The size up to which a piece of state travels in the ack and ends in the metadata, in bytes: unless a job chooses, and at most.
const (
	DefaultInlineLimit = 32 << 10
	MaxInlineLimit     = 1 << 20
)

// Compression is how the state in a checkpoint's files is compressed.
type Compression string

// The kinds of compression.
const (
	NoCompression   Compression = "none"
	ZstdCompression Compression = "zstd"
)

// CheckpointOptions are the rules of a job's checkpoints.
type CheckpointOptions struct {
	Interval time.Duration // negative: no periodic checkpoints
	// IntervalDuringBacklog takes the place of Interval while a source works off a backlog, and is no shorter; 0: Interval; negative: no
	// periodic checkpoints meanwhile.
	IntervalDuringBacklog time.Duration

	MinPause          time.Duration // between the end of one checkpoint and the next periodic trigger
	Timeout           time.Duration
	MaxConcurrent     int // checkpoints pending at a time; savepoints do not wait for it
	Retained          int
	TolerableFailures int // failed checkpoints in a row before the job restarts
	DeleteOnCancel    bool
	DegradedAfter     time.Duration // without a completed checkpoint the job is DEGRADED; 0: 10 intervals, at least 30 s; negative: never. In a backlog without checkpoints it is not

	InlineLimit int         // size in bytes up to which a piece of state travels in the ack
	Compression Compression // of state that is larger
}

// DeletedAfter reports whether the retained checkpoints of a job go with it when it ends in that state. Those of a job that has FAILED are kept
// always: somebody will want to go on from them.
func (o CheckpointOptions) DeletedAfter(s State) bool {
	return s == Finished || s == Canceled && o.DeleteOnCancel
}

// Strategy is a restart strategy.
type Strategy string

// The restart strategies.
const (
	ExponentialDelay Strategy = "exponential-delay"
	FixedDelay       Strategy = "fixed-delay"
	FailureRate      Strategy = "failure-rate"
	NoRestart        Strategy = "none"
)

// RestartOptions are the rules of a job's restarts.
type RestartOptions struct {
	Strategy     Strategy
	InitialDelay time.Duration
	MaxDelay     time.Duration
	Multiplier   float64
	Jitter       float64 // share of the delay that is added or taken away at random
	ResetAfter   time.Duration
	Attempts     int
	Window       time.Duration
}

// ExchangeOptions tune the data exchange.
type ExchangeOptions struct {
	BatchSize int           // records per batch
	Linger    time.Duration // how long a record may wait for its batch to fill; negative: not at all
	Credits   int           // batches in flight per channel
}

// Backend is where keyed state is while a job runs.
type Backend string

// The state backends. A checkpoint of one can be restored into the other.
const (
	MemoryBackend Backend = "memory" // on the heap of the executor
	PebbleBackend Backend = "pebble" // on its disk, with a part of it in memory
)

// StateOptions are about the state of a job while it runs.
type StateOptions struct {
	Backend Backend // of keyed state
}

// Normalize returns o with defaults in the place of zero values.
func (o Options) Normalize() Options {
	def(&o.Parallelism, 1)
	def(&o.MaxParallelism, DefaultMaxParallelism)
	def(&o.Checkpoint.Interval, 10*time.Second)
	def(&o.Checkpoint.Timeout, 10*time.Minute)
	def(&o.Checkpoint.MaxConcurrent, 1)
	def(&o.Checkpoint.Retained, 1)
	def(&o.Checkpoint.InlineLimit, DefaultInlineLimit)
	def(&o.Checkpoint.Compression, NoCompression)
	def(&o.Restart.Strategy, ExponentialDelay)
	def(&o.Restart.InitialDelay, 100*time.Millisecond)
	def(&o.Restart.MaxDelay, time.Minute)
	def(&o.Restart.Multiplier, 2)
	def(&o.Restart.Jitter, 0.1)
	def(&o.Restart.ResetAfter, time.Hour)
	def(&o.Restart.Attempts, 8)
	def(&o.Restart.Window, time.Minute)
	def(&o.Exchange.BatchSize, 512)
	def(&o.Exchange.Linger, time.Millisecond)
	def(&o.Exchange.Credits, 8)
	def(&o.State.Backend, MemoryBackend)
	return o
}

// Effective is Normalize, but leaves the parallelism alone: what executors plan from must be the very options that the graph was planned from.
func (o Options) Effective() Options {
	full := o.Normalize()
	full.Parallelism, full.MaxParallelism = o.Parallelism, o.MaxParallelism
	return full
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
