package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/inspect/inspecttest"
	"github.com/weirstream/weir/internal/rpc"
)

// Binaries are the command lines of the programs, without their flags.
type Binaries struct{ JobMaster, TaskExecutor, Weir []string }

// Build builds the programs of the module at root into dir.
func Build(ctx context.Context, root, dir string) (Binaries, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cmd/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binaries{}, fmt.Errorf("build: %w\n%s", err, out)
	}
	program := func(name string) []string { return []string{filepath.Join(dir, name)} }
	return Binaries{program("jobmaster"), program("taskexecutor"), program("weir")}, nil
}

// Root finds the directory of the module's go.mod above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}

// Settings are what a cluster may have otherwise than others. What is empty has a default.
type Settings struct {
	CheckpointDir string   // location; the directory "checkpoints" of the cluster
	SavepointDir  string   // location of the savepoints that Audit looks at; the directory "savepoints" of the cluster
	Env           []string // of all processes, in addition to that of this one
	ExecutorEnv   []string // of executors, after Env
	ExecutorFlags []string // of executors, after those that all have
}

// Cluster is a job master and task executors.
type Cluster struct {
	Address   string // of the job master
	Dir       string
	Jobs      gateway.Jobs
	settings  Settings
	bin       Binaries
	conn      *grpc.ClientConn
	jobMaster *Process
	executors map[string]*Process
	ended     []*Process // processes that are gone
}

// Start starts a job master in dir. Executors are started by StartExecutor.
func Start(bin Binaries, dir string) (*Cluster, error) { return StartWith(bin, dir, Settings{}) }

// StartWith is Start with settings.
func StartWith(bin Binaries, dir string, s Settings) (*Cluster, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s.CheckpointDir = cmp.Or(s.CheckpointDir, filepath.Join(dir, "checkpoints"))
	s.SavepointDir = cmp.Or(s.SavepointDir, filepath.Join(dir, "savepoints"))
	c := &Cluster{Address: address, Dir: dir, settings: s, bin: bin, executors: map[string]*Process{}}
	if err := c.StartJobMaster(); err != nil {
		return nil, err
	}
	if c.conn, err = rpc.Dial(address); err != nil {
		_ = c.jobMaster.Kill()
		return nil, err
	}
	c.Jobs = rpc.NewJobs(c.conn)
	return c, nil
}

// StartJobMaster starts the job master again after KillJobMaster, at the same address and on the same directories.
func (c *Cluster) StartJobMaster() error {
	p, err := start(filepath.Join(c.Dir, "jobmaster.log"), c.settings.Env, c.bin.JobMaster,
		"--listen", c.Address, "--checkpoint-dir", c.settings.CheckpointDir, "--data-dir", filepath.Join(c.Dir, "data"), "--http", "")
	if err != nil {
		return err
	}
	if c.jobMaster != nil {
		c.ended = append(c.ended, c.jobMaster)
	}
	c.jobMaster = p
	return nil
}

// SavepointDir is where the savepoints are that Audit looks at.
func (c *Cluster) SavepointDir() string { return c.settings.SavepointDir }

// KillJobMaster ends the job master with SIGKILL and waits until the process is gone.
func (c *Cluster) KillJobMaster() error { return c.jobMaster.Kill() }

// Command is a call of the program weir that speaks to this cluster.
func (c *Cluster) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = slices.Concat(c.bin.Weir[1:], args, []string{"--jobmaster", c.Address})
	cmd := exec.CommandContext(ctx, c.bin.Weir[0], args...)
	cmd.Env = append(os.Environ(), c.settings.Env...)
	return cmd
}

// StartExecutor starts an executor, or starts it again after Kill, on the same data directory. Flags that are given win over those of every executor.
func (c *Cluster) StartExecutor(id string, slots int, flags ...string) error {
	p, err := start(filepath.Join(c.Dir, id+".log"), slices.Concat(c.settings.Env, c.settings.ExecutorEnv), c.bin.TaskExecutor,
		slices.Concat([]string{"--id", id, "--jobmaster", c.Address, "--listen", "127.0.0.1:0", "--http", "", "--slots", fmt.Sprint(slots),
			"--data-dir", c.DataDir(id)}, c.settings.ExecutorFlags, flags)...)
	if err != nil {
		return err
	}
	c.executors[id] = p
	return nil
}

// DataDir is the data directory of an executor.
func (c *Cluster) DataDir(id string) string { return filepath.Join(c.Dir, id) }

// KillExecutor ends an executor with SIGKILL and waits until the process is gone.
func (c *Cluster) KillExecutor(id string) error {
	p := c.executors[id]
	if p == nil {
		return fmt.Errorf("no executor %s runs", id)
	}
	delete(c.executors, id)
	c.ended = append(c.ended, p)
	return p.Kill()
}

// AwaitSlots waits until executors with that many slots are registered.
func (c *Cluster) AwaitSlots(ctx context.Context, n int) error {
	for {
		have := 0
		executors, err := c.Jobs.TaskExecutors(ctx)
		for _, e := range executors {
			have += e.Slots
		}
		if err == nil && have >= n {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d slots are registered (%w); see the logs in %s", have, n, errors.Join(ctx.Err(), err), c.Dir)
		}
	}
}

// CPU is the time that all processes of the cluster have spent so far on the processor, the killed ones included.
func (c *Cluster) CPU() time.Duration {
	total := c.jobMaster.CPU()
	for _, p := range c.executors {
		total += p.CPU()
	}
	for _, p := range c.ended {
		total += p.CPU()
	}
	return total
}

// Stop kills every process. It may be called more than once.
func (c *Cluster) Stop() {
	_ = c.conn.Close()
	for id := range c.executors {
		_ = c.KillExecutor(id)
	}
	_ = c.jobMaster.Kill()
}

// Audit stops the cluster and finds what is wrong with the checkpoints and savepoints that it leaves: where its settings say. swept says that something was killed, so that files may be left for a sweep.
func (c *Cluster) Audit(ctx context.Context, swept bool) error {
	facts, err := inspecttest.Ask(ctx, c.Jobs)
	if err != nil {
		return err
	}
	facts.Sweep = swept
	c.Stop()
	return errors.Join(
		inspecttest.AuditDir(ctx, c.settings.CheckpointDir, facts),
		inspecttest.AuditDir(ctx, c.settings.SavepointDir, facts),
	)
}

func freeAddress() (string, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String(), nil
}

// Process is a process that the harness has started.
type Process struct {
	cmd  *exec.Cmd
	log  io.Closer
	done chan struct{}
	once sync.Once
}

func start(log string, env, program []string, flags ...string) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program[0], append(slices.Clone(program[1:]), flags...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &Process{cmd: cmd, log: f, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log and its state
		_ = f.Close()
	}()
	return p, nil
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() error {
	var err error
	p.once.Do(func() { err = p.cmd.Process.Kill() })
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// CPU is the user and system time of the process so far.
func (p *Process) CPU() time.Duration {
	select {
	case <-p.done:
		return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	default:
		return cpuOf(p.cmd.Process.Pid)
	}
}
