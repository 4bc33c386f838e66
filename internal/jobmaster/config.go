package jobmaster

import (
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/ha"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/masterhook"
)

// The limits of a job master.
const (
	// maxHistory is how many jobs that have ended are remembered.
	maxHistory = 100
	// senderCapacity is how many calls of one job may wait for one executor. What does not fit fails at once.
	senderCapacity = 256
	// maxStorageCalls is how many storage calls of one job run at a time.
	maxStorageCalls = 4
	// retryMin and retryMax bound the pause before a call of the storage that must succeed is made again.
	retryMin, retryMax = 100 * time.Millisecond, 5 * time.Second

	deployTimeout  = 30 * time.Second
	callTimeout    = 10 * time.Second
	planTimeout    = time.Minute
	storageTimeout = time.Minute

	defaultHeartbeatInterval = time.Second
	defaultHeartbeatTimeout  = 10 * time.Second
)

// Config is what a job master is made of.
type Config struct {
	Log   *zap.Logger
	Epoch job.LeaderEpoch
	// Archive is where the checkpoints are. Executors are told its location, and savepoints are written and restore paths read through it.
	Archive archive.Archive
	// Store keeps the records of jobs, so that the next job master knows them; nil: jobs end with this one. Recovered are the records that it had.
	Store     JobStore
	Recovered []ha.Record
	// SavepointDir is the parent of savepoints that name none; empty: they must.
	SavepointDir      string
	HeartbeatInterval time.Duration // that executors are told; 0: 1 s
	HeartbeatTimeout  time.Duration // after which a silent executor is lost; 0: 10 s
	Rules             Rules

	Sweeping Sweeping

	// Dial connects to an executor; it need not wait for the connection. The closer may be nil.
	Dial func(address string) (gateway.TaskExecutor, io.Closer, error)
	// NewID makes ids of jobs and names of savepoints; they are unique over all job masters.
	NewID func() job.ID
	// Random gives numbers in [0,1). It is called from several goroutines.
	Random func() float64
}

// Rules are what all jobs of a job master have in common.
type Rules struct {
	// CheckpointHistory is how many checkpoints of each job are remembered; 0: job.DefaultCheckpointHistory, at most job.MaxCheckpointHistory.
	CheckpointHistory int
	CancelTimeout     time.Duration // see scheduler.Config
	// IntervalDuringBacklog is that of jobs that choose none, if it is longer than their interval; see job.CheckpointOptions.
	IntervalDuringBacklog time.Duration
	// Fallback: a job whose latest checkpoint cannot be read when this job master takes it over goes on from the next older one.
	Fallback bool
	// OpenHooks makes the master hooks of jobs; nil: jobs that have some are refused.
	OpenHooks masterhook.Opener
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.HeartbeatInterval <= 0 {
		c.HeartbeatInterval = defaultHeartbeatInterval
	}
	if c.HeartbeatTimeout <= 0 {
		c.HeartbeatTimeout = max(defaultHeartbeatTimeout, 3*c.HeartbeatInterval)
	}
	return c
}
