package taskexecutor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/exchange"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/storage/storagetest"
	"github.com/weirstream/weir/internal/workdir"
	"github.com/weirstream/weir/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// master is a job master that writes down what it is told.
type master struct {
	epoch   job.LeaderEpoch
	dir     string
	verdict checkpoint.Verdict // of acks; none: Kept
	end     chan error         // ends the registration with this error
	onState func(gateway.TaskUpdate) error
	answer  func(gateway.Heartbeat) (gateway.HeartbeatAnswer, error)
	forget  atomic.Bool // the next heartbeat is from an executor that is not known

	mu         sync.Mutex
	refuse     error  // of the next registrations
	onReg      func() // is called by a registration
	lines      []string
	failures   []job.Failure
	heartbeats []gateway.Heartbeat
	acks       []gateway.Ack
}

func (m *master) add(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, fmt.Sprintf(format, args...))
}

// take returns what was said since the last call, when nothing moves any more.
func (m *master) take() []string {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := m.lines
	m.lines = nil
	return lines
}

// registrations sets what happens to the next ones.
func (m *master) registrations(refuse error, onReg func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse, m.onReg = refuse, onReg
}

func (m *master) RegisterTaskExecutor(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error {
	m.mu.Lock()
	refuse, onReg := m.refuse, m.onReg
	m.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	if onReg != nil {
		onReg()
	}
	m.add("register %s %s %v", r.Executor, r.Incarnation, r.Jobs)
	registered(gateway.Registered{Epoch: m.epoch, HeartbeatInterval: time.Second, CheckpointDir: m.dir})
	select {
	case err := <-m.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *master) Heartbeat(_ context.Context, r gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
	m.mu.Lock()
	m.heartbeats = append(m.heartbeats, r)
	m.mu.Unlock()
	if m.forget.Swap(false) {
		return gateway.HeartbeatAnswer{}, &gateway.Error{Code: gateway.FailedPrecondition, Reason: gateway.ReasonNotRegistered}
	}
	if m.answer == nil {
		return gateway.HeartbeatAnswer{}, nil
	}
	return m.answer(r)
}

func (m *master) lastHeartbeat() gateway.Heartbeat {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.heartbeats) == 0 {
		return gateway.Heartbeat{}
	}
	return m.heartbeats[len(m.heartbeats)-1]
}

func (m *master) UpdateTaskState(_ context.Context, r gateway.TaskUpdate) error {
	if m.onState != nil {
		if err := m.onState(r); err != nil {
			return err
		}
	}
	end := ""
	if r.EndOfData {
		end = ", end of data"
	}
	m.mu.Lock()
	m.failures = append(m.failures, r.Failure)
	m.mu.Unlock()
	m.add("%s %s%s", r.Attempt, r.State, end)
	return nil
}

func (m *master) lastFailure() job.Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failures[len(m.failures)-1]
}

func (m *master) AcknowledgeCheckpoint(_ context.Context, r gateway.Ack) (checkpoint.Verdict, error) {
	m.mu.Lock()
	m.acks = append(m.acks, r)
	m.mu.Unlock()
	m.add("ack %d %s", r.ID, r.Attempt)
	return cmp.Or(m.verdict, checkpoint.Kept), nil
}

func (m *master) DeclineCheckpoint(_ context.Context, r gateway.Decline) error {
	m.add("decline %d %s %s %s", r.ID, r.Attempt, r.Reason, r.Message)
	return nil
}

// ticks is a source that waits until it is canceled. Its behaviour is chosen by the test.
type ticks struct {
	opening chan struct{} // when not nil, Open waits for it
	closing chan struct{} // when not nil, Close waits for it
	emit    int
}

func (*ticks) Splits(context.Context, int) ([][]byte, error) { return [][]byte{[]byte("all")}, nil }

func (s *ticks) Open(env stream.SourceEnv) (stream.Reader[int], error) {
	if s.opening != nil {
		<-s.opening
	}
	return &tickReader{s, env.Splits}, nil
}

type tickReader struct {
	src    *ticks
	splits [][]byte
}

func (r *tickReader) Read(out stream.Collector[int], _ int) (stream.Next, error) {
	for v := range r.src.emit {
		if err := out.Collect(stream.NoTimestamp, v); err != nil {
			return stream.More, err
		}
	}
	return stream.WaitForWake, nil
}

func (r *tickReader) Positions() ([][]byte, error) { return r.splits, nil }

func (r *tickReader) Close() error {
	if r.src.closing != nil {
		<-r.src.closing
	}
	return nil
}

// nothing is a sink that drops.
type nothing struct{}

func (nothing) Open(stream.SinkEnv) (stream.Writer[int], error) { return nothing{}, nil }
func (nothing) Write(stream.Timestamp, int) error               { return nil }
func (nothing) Flush() error                                    { return nil }
func (nothing) Close() error                                    { return nil }

// rig is an executor with a job master that the test plays. The job is src, and behind a rebalance out.
type rig struct {
	t      *testing.T
	m      *master
	src    *ticks
	e      *Executor
	cfg    Config
	dial   func(context.Context, string) (exchange.FrameStream, error)
	open   func(string) (Storage, error)
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

const testJob job.ID = "j1"

func newRig(t *testing.T) *rig {
	mem := storagetest.NewMem()
	r := &rig{t: t, m: &master{epoch: 7, dir: "/checkpoints", end: make(chan error)}, src: &ticks{}, done: make(chan struct{})}
	r.open = func(string) (Storage, error) { return mem, nil }
	r.cfg = Config{
		Dir: workdir.New(r.t.TempDir()),
		ID:  "e1", Incarnation: "i1", Address: "here:1", Slots: 2, Log: zap.NewNop(), JobMaster: r.m,
		OpenStorage: func(_ context.Context, location string, _ bool) (Storage, error) { return r.open(location) },
		Jobs: []stream.Definition{stream.Define("idle", "", func(j *stream.Job) error {
			stream.To(stream.From(j, "src", stream.Source[int](r.src)).Rebalance(), "out", stream.Sink[int](nothing{}))
			return nil
		})},
	}
	return r
}

// frames are buffers without a pool.
type frames struct{}

func (frames) Get(size int) *[]byte { b := make([]byte, size); return &b }
func (frames) Put(*[]byte)          {}

func (r *rig) start() *rig {
	r.t.Helper()
	r.cfg.Network = exchange.NewNetwork(exchange.Config{Address: r.cfg.Address, Frames: frames{}, Dial: func(ctx context.Context, a string) (exchange.FrameStream, error) {
		return r.dial(ctx, a)
	}})
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel, r.e = cancel, New(r.cfg)
	go func() {
		defer close(r.done)
		r.err = r.e.Run(ctx)
	}()
	r.t.Cleanup(func() { cancel(); <-r.done })
	synctest.Wait()
	return r
}

// registered starts the executor and forgets its registration.
func (r *rig) registered() *rig {
	r.t.Helper()
	r.start().expect("register e1 i1 [idle]")
	return r
}

func (r *rig) expect(want ...string) {
	r.t.Helper()
	if got := r.m.take(); !slices.Equal(got, want) {
		r.t.Fatalf("the job master was told\n %q\nwant\n %q", got, want)
	}
}

// wait returns what Run returned.
func (r *rig) wait() error {
	r.t.Helper()
	synctest.Wait()
	select {
	case <-r.done:
	default:
		r.t.Fatal("Run goes on")
	}
	return r.err
}

func attempt(vertex string, n int) job.AttemptID {
	return job.AttemptID{Job: testJob, Task: job.TaskID{Vertex: job.VertexID(vertex)}, Attempt: n}
}

// deployment is a request to start attempt n of both tasks, or of some.
func (r *rig) deployment(n int, vertices ...string) gateway.DeployTasks {
	r.t.Helper()
	opts := job.Options{}.Normalize()
	g, err := r.e.PlanJob(r.t.Context(), gateway.PlanJob{JobName: "idle", Options: opts})
	if err != nil {
		r.t.Fatal(err)
	}
	d := gateway.DeployTasks{Epoch: r.m.epoch, Job: testJob, Graph: g, Options: opts}
	for _, v := range []string{"src", "out"} {
		d.Placements = append(d.Placements, job.Placement{Attempt: attempt(v, n), Executor: "e1", Address: "here:1"})
		if len(vertices) > 0 && !slices.Contains(vertices, v) {
			continue
		}
		td := gateway.TaskDeployment{Attempt: attempt(v, n)}
		if v == "src" {
			td.Splits = []int{0}
		}
		d.Tasks = append(d.Tasks, td)
	}
	return d
}

func (r *rig) deploy(d gateway.DeployTasks) {
	r.t.Helper()
	if err := r.e.DeployTasks(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

// running deploys attempt n of both tasks.
func (r *rig) running(n int) *rig {
	r.t.Helper()
	r.deploy(r.deployment(n))
	got := r.m.take()
	slices.Sort(got)
	want := []string{fmt.Sprintf("out[0]#%d INITIALIZING", n), fmt.Sprintf("out[0]#%d RUNNING", n),
		fmt.Sprintf("src[0]#%d INITIALIZING", n), fmt.Sprintf("src[0]#%d RUNNING", n)}
	if !slices.Equal(got, want) {
		r.t.Fatalf("the job master was told %q, want %q", got, want)
	}
	return r
}

func hasReason(err error, code gateway.Code, reason string) bool {
	return gateway.CodeOf(err) == code && gateway.ReasonOf(err) == reason
}

var errUnavailable = &gateway.Error{Code: gateway.Unavailable, Message: "connection lost"}

var errBroken = errors.New("broken")
