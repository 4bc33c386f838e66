package jobmaster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/weirstream/weir/internal/archive"
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect/inspecttest"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/location"
)

// cluster is a job master with fake executors and a storage in memory, for use in a bubble.
type cluster struct {
	t         *testing.T
	m         *JobMaster
	stop      context.CancelFunc
	stopped   chan error
	tampered  bool // the test changes files itself, so that there is nothing to audit
	storage   *memory
	elsewhere *memory // what is outside the checkpoint directory, with full paths
	ids       int
	mu        sync.Mutex
	executors map[string]*executor // by address
}

func newCluster(t *testing.T, change ...func(*Config)) *cluster {
	c := &cluster{t: t, storage: newMemory(), elsewhere: newMemory(), executors: map[string]*executor{}, stopped: make(chan error, 1)}
	cfg := Config{
		Log: zaptest.NewLogger(t), Epoch: 1, Rules: Rules{CancelTimeout: 30 * time.Second},
		HeartbeatInterval: time.Second, HeartbeatTimeout: 5 * time.Second,
		Archive: archive.Archive{Root: c.storage, At: "file:///chk", Open: openIn(c.elsewhere)},
		Dial:    func(address string) (gateway.TaskExecutor, io.Closer, error) { return c.at(address), nil, nil },
		NewID:   func() job.ID { c.ids++; return job.ID(fmt.Sprintf("job-%d", c.ids)) },
		Random:  func() float64 { return 0 },
	}
	for _, f := range change {
		f(&cfg)
	}
	c.m = New(cfg)
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() { c.stopped <- c.m.Run(ctx) }()
	return c
}

// openIn opens directories outside the checkpoint directory.
func openIn(elsewhere *memory) func(_ context.Context, location string, mustExist bool) (archive.Storage, error) {
	return func(_ context.Context, location string, mustExist bool) (archive.Storage, error) {
		if mustExist && !elsewhere.hasDir(location) {
			return nil, fmt.Errorf("%s: no such directory", location)
		}
		return below{elsewhere, location}, nil
	}
}

// close ends the job master; everything must end with it, and no file may be without a reason.
func (c *cluster) close() {
	facts, asked := inspecttest.Ask(c.t.Context(), c.m)
	c.stop()
	if err := <-c.stopped; err != nil {
		c.t.Errorf("Run: %v", err)
	}
	for _, x := range c.executors {
		x.disconnect()
	}
	if c.tampered || c.storage.dead.Load() || c.t.Failed() {
		return // who is dead leaves it to the next one
	}
	if asked != nil {
		c.t.Errorf("facts: %v", asked)
	}
	c.storage.audit(c.t.Context(), c.t, facts)
	c.elsewhere.audit(c.t.Context(), c.t, facts)
}

func (c *cluster) at(address string) *executor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.executors[address]
}

// executor is a fake task executor: it says that its tasks run, acknowledges checkpoints, and ends tasks when it is told.
type executor struct {
	c      *cluster
	id     job.ExecutorID
	reg    gateway.Registration
	cancel context.CancelFunc
	ended  chan error
	script script

	mu       sync.Mutex
	tasks    map[job.AttemptID]gateway.TaskDeployment
	deployed []gateway.DeployTasks
	ends     checkpoint.ID // the tasks finish when it has completed; 0: none
	notified []checkpoint.ID
	aborted  []checkpoint.ID
	work     sync.WaitGroup
}

// script changes what an executor does.
type script struct {
	deploy  func(context.Context) error // before a deployment is accepted
	trigger func(context.Context) error
	notify  func(context.Context) error
	abort   func(context.Context) error
	mute    bool // no heartbeats
	noAck   func(gateway.TriggerCheckpoint, job.AttemptID) bool
	stuck   bool // ignores cancellations
	behind  bool // its tasks work off a backlog
}

// graphOf is a source vertex and an aggregation with the given parallelism. In the job "pipelines" they are connected forward, so that each subtask is a
// failover region.
func graphOf(name string, parallelism int) *job.Graph {
	g := &job.Graph{Name: name, Fingerprint: fmt.Sprintf("f%d", parallelism), Vertices: []job.Vertex{
		{ID: "src", Name: "src", Parallelism: parallelism, MaxParallelism: 8, Operators: []job.Operator{{ID: "src", Kind: "source", Stateful: true}}},
		{ID: "agg", Name: "agg", Parallelism: parallelism, MaxParallelism: 8, Operators: []job.Operator{{ID: "agg", Kind: "reduce", Stateful: true}}},
	}, Edges: []job.Edge{{ID: "src->agg", From: "src", To: "agg", Partitioning: job.Hash}}}
	for i := range 3 {
		g.Vertices[0].Splits = append(g.Vertices[0].Splits, []byte{byte(i)})
	}
	if name == "pipelines" {
		g.Edges[0].Partitioning = job.Forward
	}
	return g
}

// start registers an executor and returns when it is registered.
func (c *cluster) start(id string, slots int, s script, jobs ...string) *executor {
	if len(jobs) == 0 {
		jobs = []string{"flights"}
	}
	return c.startAs(gateway.Registration{
		Executor: job.ExecutorID(id), Incarnation: id + "-1", Address: id + ":1", Slots: slots, Jobs: jobs, Version: "v1",
	}, s)
}

func (c *cluster) startAs(r gateway.Registration, s script) *executor {
	ctx, cancel := context.WithCancel(c.t.Context())
	x := &executor{
		c: c, id: r.Executor, reg: r, cancel: cancel, ended: make(chan error, 1), script: s,
		tasks: map[job.AttemptID]gateway.TaskDeployment{},
	}
	c.mu.Lock()
	c.executors[r.Address] = x
	c.mu.Unlock()
	registered := make(chan struct{})
	go func() {
		err := c.m.RegisterTaskExecutor(ctx, r, func(gateway.Registered) { close(registered) })
		x.ended <- err
		cancel()
	}()
	select {
	case <-registered:
	case err := <-x.ended:
		c.t.Fatalf("register %s: %v", r.Executor, err)
	}
	if !s.mute {
		go x.beat(ctx)
	}
	return x
}

func (x *executor) beat(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		h := gateway.Heartbeat{Executor: x.id, Incarnation: x.reg.Incarnation, Epoch: 1}
		x.mu.Lock()
		for a := range x.tasks {
			h.Tasks = append(h.Tasks, gateway.TaskReport{Attempt: a, State: job.TaskRunning, RecordsIn: 7})
		}
		x.mu.Unlock()
		answer, err := x.c.m.Heartbeat(ctx, h)
		if err != nil {
			continue
		}
		x.mu.Lock()
		for _, a := range answer.Unknown {
			delete(x.tasks, a)
		}
		x.mu.Unlock()
	}
}

// disconnect breaks the registration, as the death of the process does.
func (x *executor) disconnect() {
	x.cancel()
	x.work.Wait()
}

func (x *executor) update(a job.AttemptID, s job.TaskState, endOfData bool) {
	_ = x.c.m.UpdateTaskState(x.c.t.Context(), gateway.TaskUpdate{Epoch: 1, Attempt: a, State: s, EndOfData: endOfData, Backlog: x.script.behind})
}

func (x *executor) PlanJob(_ context.Context, r gateway.PlanJob) (*job.Graph, error) {
	if r.Params["bad"] != "" {
		return nil, &gateway.Error{Code: gateway.InvalidArgument, Reason: gateway.ReasonBadParameter, Message: "parameter bad is bad"}
	}
	g := graphOf(r.JobName, max(r.Options.Parallelism, 1))
	if n := r.Options.OperatorParallelism["agg"]; n > 0 {
		g.Vertices[1].Parallelism, g.Fingerprint = n, fmt.Sprintf("%s-%d", g.Fingerprint, n)
	}
	if r.WithoutSplits {
		g.Vertices[0].Splits = nil
	}
	if id := r.Params["hook"]; id != "" {
		g.MasterHooks = []string{id}
	}
	return g, nil
}

func (x *executor) DeployTasks(ctx context.Context, r gateway.DeployTasks) error {
	if x.script.deploy != nil {
		if err := x.script.deploy(ctx); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deployed, x.ends = append(x.deployed, r), 0
	if from := r.Tasks[0].Restore; from != nil && from.Stopped {
		x.ends = from.Checkpoint
	}
	for _, t := range r.Tasks {
		x.tasks[t.Attempt] = t
	}
	x.work.Go(func() {
		for _, t := range r.Tasks {
			x.update(t.Attempt, job.TaskInitializing, false)
		}
		for _, t := range r.Tasks {
			x.update(t.Attempt, job.TaskRunning, false)
		}
	})
	return nil
}

func (x *executor) CancelTasks(_ context.Context, r gateway.CancelTasks) (unknown []job.AttemptID, err error) {
	if x.script.stuck {
		return nil, nil
	}
	for _, a := range r.Attempts {
		if !x.drop(a) {
			unknown = append(unknown, a)
			continue
		}
		x.work.Go(func() { x.update(a, job.TaskCanceled, false) })
	}
	return unknown, nil
}

func (x *executor) drop(a job.AttemptID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, ok := x.tasks[a]
	delete(x.tasks, a)
	return ok
}

func (x *executor) attempts() []job.AttemptID {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []job.AttemptID
	for a := range x.tasks {
		out = append(out, a)
	}
	slices.SortFunc(out, job.AttemptID.Compare)
	return out
}

// TriggerCheckpoint acknowledges for every task of the executor: each executor of these tests has a source.
func (x *executor) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) (unknown []job.AttemptID, err error) {
	if x.script.trigger != nil {
		if err := x.script.trigger(ctx); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	if x.ends = 0; r.Final || r.Stop != job.StopNone {
		x.ends = r.ID
	}
	x.mu.Unlock()
	for _, a := range x.attempts() {
		if x.script.noAck != nil && x.script.noAck(r, a) || a.Job != r.Attempts[0].Job {
			continue
		}
		x.work.Go(func() {
			file := checkpoint.StateFile(a, r.ID)
			files := x.c.storage
			if location.Is(r.Dir) {
				files = x.c.elsewhere
			}
			if err := files.CreateFile(x.c.t.Context(), r.Dir+"/"+file, []byte("state")); err != nil && !errors.Is(err, errDead) {
				x.c.t.Errorf("write state: %v", err)
			}
			v, err := x.c.m.AcknowledgeCheckpoint(x.c.t.Context(), ackOf(a, r.ID))
			if err == nil && (v == checkpoint.TooLate || v == checkpoint.Unknown) {
				_ = x.c.storage.RemoveAll(x.c.t.Context(), r.Dir)
			}
		})
	}
	return nil, nil
}

// ackOf is an ack whose state is one item that names the task and the checkpoint.
func ackOf(a job.AttemptID, id checkpoint.ID) gateway.Ack {
	file := checkpoint.StateFile(a, id)
	return gateway.Ack{Epoch: 1, Attempt: a, ID: id, State: checkpoint.SubtaskState{
		Subtask: a.Task.Subtask,
		Operators: []checkpoint.OperatorState{{
			Operator: string(a.Task.Vertex),
			Items:    &checkpoint.Items{Handle: checkpoint.FileHandle(file, 0, []byte("state")), Offsets: []int64{0, 5}},
		}},
	}, Metrics: checkpoint.Metrics{StateBytes: 5}}
}

func (x *executor) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	if x.script.notify != nil {
		if err := x.script.notify(ctx); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	x.notified = append(x.notified, r.ID)
	ends := x.ends != 0 && r.ID >= x.ends
	x.mu.Unlock()
	if ends {
		for _, a := range r.Attempts {
			x.drop(a)
			x.work.Go(func() { x.update(a, job.TaskFinished, true) })
		}
	}
	return nil, nil
}

func (x *executor) NotifyCheckpointAborted(ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
	if x.script.abort != nil {
		if err := x.script.abort(ctx); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ends == r.ID {
		x.ends = 0
	}
	x.aborted = append(x.aborted, r.ID)
	return nil, nil
}

// endOfData says that every task has reached the end of its input.
func (x *executor) endOfData() {
	for _, a := range x.attempts() {
		x.update(a, job.TaskRunning, true)
	}
}

// lastDeployment is the latest one, and how many there were.
func (x *executor) lastDeployment() (gateway.DeployTasks, int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.deployed) == 0 {
		return gateway.DeployTasks{}, 0
	}
	return x.deployed[len(x.deployed)-1], len(x.deployed)
}

// submit starts a job with checkpoints every second.
func (c *cluster) submit(parallelism int, change ...func(*gateway.Submission)) job.ID {
	c.t.Helper()
	s := gateway.Submission{JobName: "flights", Options: job.Options{Parallelism: parallelism, MaxParallelism: 8}}
	s.Options.Checkpoint.Interval = time.Second
	for _, f := range change {
		f(&s)
	}
	id, err := c.m.Submit(c.t.Context(), s)
	if err != nil {
		c.t.Fatalf("submit: %v", err)
	}
	return id
}

func (c *cluster) status(id job.ID) gateway.JobStatus {
	c.t.Helper()
	s, err := c.m.Get(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// expect waits until nothing moves and then compares the state.
func (c *cluster) expect(id job.ID, want job.State) gateway.JobStatus {
	c.t.Helper()
	synctest.Wait()
	s := c.status(id)
	if s.State != want {
		c.t.Fatalf("job %s is %s (%s), want %s", id, s.State, s.Detail, want)
	}
	return s
}

func runningTasks(s gateway.JobStatus) int {
	n := 0
	for _, v := range s.Vertices {
		for _, t := range v.Tasks {
			if t.State == job.TaskRunning {
				n++
			}
		}
	}
	return n
}

func (x *executor) abortedNow() []checkpoint.ID {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.aborted)
}
