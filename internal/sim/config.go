package sim

import (
	"math/rand/v2"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// Config is one run.
type Config struct {
	Seed   uint64
	Faults Faults
	// FaultsFor is how long faults happen; after that everything heals and the job must come to rest.
	FaultsFor time.Duration
	// Bounded: the input ends, and the job must finish with exactly the output that the model says.
	Bounded bool
	Cancel  bool // the user cancels the job when the faults have ended
	// Resume: the user cancels the job while there are faults, and starts another one from its latest checkpoint, at another parallelism.
	Resume bool
	// SilentHeartbeats tell nothing of completed checkpoints, so that the coordinator's own repetition has to do.
	SilentHeartbeats bool
	// Stop is the mean time between requests for a savepoint that ends the job; 0: never. The next job starts from it.
	Stop time.Duration
	// Rescale is the mean time between requests for another parallelism; 0: never.
	Rescale time.Duration
	// Native: keyed state is in immutable files, which checkpoints share.
	Native     bool
	Checkpoint job.CheckpointOptions
	Restart    job.RestartOptions
	LogLines   int // of the end of the log that are kept; 0: some
}

// Faults are what goes wrong: probabilities for each opportunity, and mean times between events, 0 for never.
type Faults struct {
	// Of each message.
	RequestLost, AnswerLost, Duplicate, Slow float64
	// Of each storage operation: nothing is done, it is done and an error is given all the same (half of these not durably), it takes long.
	StorageBefore, StorageAfter, StorageStall float64
	// MetadataStall: the write of the metadata takes long, in addition. It is the moment at which a checkpoint may be durable or not.
	MetadataStall float64
	// StorageStorm is a time in which most operations of the job master fail.
	StorageStorm time.Duration
	// MetadataStorm: such a time begins with a write of metadata.
	MetadataStorm float64
	// Of the transaction that a sink makes durable, and of the call of a master hook.
	PersistFails, HookFails float64

	ExecutorCrash, Partition, TaskError, TaskHang, LinkBreak, MachineCrash time.Duration
	// MasterCrash is the death of the job master, MasterMachineCrash that of its machine, which loses what was not synced of its records.
	MasterCrash, MasterMachineCrash time.Duration
	// MasterDies is its death in a storage operation.
	MasterDies float64
	// KillBehindEnd: all executors die soon after the first final checkpoint has completed, or the first savepoint that stops the job, and sometimes the
	// job master with them.
	KillBehindEnd bool
	// UserRequest is a checkpoint or a savepoint that somebody asks for.
	UserRequest time.Duration
	// Sweep is a sweep of the checkpoint directory.
	Sweep time.Duration
}

// RandomConfig chooses the rates of a seed: some seeds have no faults, some only a few kinds, some all.
func RandomConfig(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 0xc0))
	cfg := Config{
		Seed: seed, FaultsFor: time.Duration(10+rng.IntN(20)) * time.Second, Bounded: rng.IntN(3) > 0, Cancel: rng.IntN(12) == 0,
		Checkpoint: job.CheckpointOptions{
			Interval: time.Duration(300+rng.IntN(1200)) * time.Millisecond, MinPause: time.Duration(rng.IntN(300)) * time.Millisecond,
			Timeout: time.Duration(2+rng.IntN(4)) * time.Second, Retained: 1 + rng.IntN(3), TolerableFailures: rng.IntN(4),
			DeleteOnCancel: rng.IntN(2) == 0, MaxConcurrent: 1 + rng.IntN(3),
		},
		Restart: job.RestartOptions{InitialDelay: 50 * time.Millisecond, MaxDelay: 2 * time.Second, Attempts: 3 + rng.IntN(20)},
	}
	if rng.IntN(10) == 0 {
		cfg.Restart.Strategy = job.FixedDelay
	}
	cfg.SilentHeartbeats = rng.IntN(3) == 0
	if rng.IntN(5) == 0 {
		cfg.Resume, cfg.Checkpoint.DeleteOnCancel = true, false
	}
	if rng.IntN(3) == 0 {
		cfg.Stop = time.Duration(1+rng.IntN(6)) * time.Second
	}
	if own := rand.New(rand.NewPCG(seed, 0xf2)); own.IntN(2) == 0 {
		cfg.Rescale = time.Duration(1+own.IntN(5)) * time.Second
	}
	cfg.Native = rand.New(rand.NewPCG(seed, 0xf1)).IntN(3) > 0
	if seed%10 == 0 {
		return cfg
	}
	rate := func(highest float64) float64 {
		if rng.IntN(2) == 0 {
			return 0
		}
		return highest * rng.Float64()
	}
	mean := func(shortest int) time.Duration {
		if rng.IntN(2) == 0 {
			return 0
		}
		return time.Duration(shortest+rng.IntN(3*shortest)) * time.Second
	}
	cfg.Faults = Faults{
		RequestLost: rate(0.1), AnswerLost: rate(0.1), Duplicate: rate(0.2), Slow: rate(0.2),
		StorageBefore: rate(0.05), StorageAfter: rate(0.05), StorageStall: rate(0.1), MetadataStall: rate(0.8), PersistFails: rate(0.05), HookFails: rate(0.1),
		ExecutorCrash: mean(5), Partition: mean(6), TaskError: mean(2), TaskHang: mean(5), LinkBreak: mean(3), MachineCrash: mean(5), StorageStorm: mean(4), MetadataStorm: rate(0.2),
		MasterCrash: mean(5), MasterMachineCrash: mean(10), MasterDies: rate(0.03), UserRequest: mean(2), Sweep: mean(1),
	}
	cfg.Faults.KillBehindEnd = rng.IntN(5) == 0
	return cfg
}
