package cli_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/weirstream/weir/examples"
	"github.com/weirstream/weir/internal/cli"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// interrupts plays the signals of a process: each Notify is a listener, and a signal reaches all that listen.
type interrupts struct {
	mu        sync.Mutex
	listeners map[int]context.CancelFunc
	next      int
}

func (i *interrupts) notify(ctx context.Context) (context.Context, context.CancelFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if i.listeners == nil {
		i.listeners = map[int]context.CancelFunc{}
	}
	id := i.next
	i.next++
	i.listeners[id] = cancel
	return ctx, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.listeners, id)
		cancel()
	}
}

func (i *interrupts) signal() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, cancel := range i.listeners {
		cancel()
	}
}

// screen is an output that a test can wait for.
type screen struct {
	mu    sync.Mutex
	more  *sync.Cond
	text  bytes.Buffer
	ended bool
}

func newScreen() *screen {
	s := &screen{}
	s.more = sync.NewCond(&s.mu)
	return s
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more.Broadcast()
	return s.text.Write(b)
}

func (s *screen) wait(t *testing.T, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), text) {
		if s.ended {
			t.Fatalf("the command ended without %q:\n%s", text, s.text.String())
		}
		s.more.Wait()
	}
}

// end says that nothing more comes.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.more.Broadcast()
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// foreground is a command line that runs beside the test.
type foreground struct {
	signals        interrupts
	stdout, stderr *screen
	code           chan int
}

func start(terminal bool, args ...string) *foreground {
	f := &foreground{stdout: newScreen(), stderr: newScreen(), code: make(chan int, 1)}
	go func() {
		f.code <- cli.Weir(cli.Process{
			Name: "weir", Args: args, Stdout: f.stdout, Stderr: f.stderr, Terminal: terminal,
			LookupEnv: func(string) (string, bool) { return "", false }, Notify: f.signals.notify,
		}, examples.Jobs())
		f.stderr.end()
	}()
	return f
}

func (f *foreground) mustEnd(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if got := <-f.code; got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	if !strings.Contains(f.stdout.String(), stdout) {
		t.Errorf("stdout has no %q:\n%s", stdout, f.stdout)
	}
	if !strings.Contains(f.stderr.String(), stderr) {
		t.Errorf("stderr has no %q:\n%s", stderr, f.stderr)
	}
}

// slowFlights are the arguments of a job that runs for minutes.
func slowFlights(t *testing.T, command string) []string {
	return []string{command, "flights", "--set", "input=../../examples/data/flights-20k.csv", "--set", "output=" + t.TempDir(), "--set", "rate=50"}
}

func TestRun_FirstInterrupt_CancelsTheJob(t *testing.T) {
	c := testCluster(t)
	c.startExecutor("a", 1)
	f := start(false, append(slowFlights(t, "run"), "--jobmaster", c.address)...)
	f.stderr.wait(t, "all 2 tasks are RUNNING")
	f.signals.signal()
	f.mustEnd(t, 3, "is CANCELED after", "interrupt again to leave it alone")
	if id := job.ID(c.log.wait("job submitted", 1)["job"].(string)); !strings.Contains(f.stderr.String(), "weir: job "+string(id)+" was canceled\n") {
		t.Errorf("the last line does not name the job:\n%s", f.stderr)
	}
}

// holding is a job master whose cancellations never come about.
type holding struct {
	gateway.Jobs
	asked chan struct{}
}

func (h holding) Cancel(ctx context.Context, _ job.ID) (job.State, error) {
	close(h.asked)
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

func TestRun_SecondInterrupt_LeavesTheJob(t *testing.T) {
	c := testCluster(t)
	c.startExecutor("a", 1)
	slow := holding{c.jobs, make(chan struct{})}
	front, stop := serveJobs(t, slow)
	defer stop()
	f := start(false, append(slowFlights(t, "run"), "--jobmaster", front)...)
	f.stderr.wait(t, "all 2 tasks are RUNNING")
	f.signals.signal()
	<-slow.asked
	f.signals.signal()
	id := c.log.wait("job submitted", 1)["job"].(string)
	f.mustEnd(t, 130, "", "weir: job "+id+" goes on as it is (weir job "+id+" shows it, weir cancel "+id+" ends it)")
	if s, err := c.jobs.Get(t.Context(), job.ID(id)); err != nil || s.State != job.Running {
		t.Errorf("the job is %s, %v, want RUNNING", s.State, err)
	}
}

func TestRun_InterruptBeforeAnExecutorIsThere_SubmitsNothing(t *testing.T) {
	c := testCluster(t)
	f := start(false, append(slowFlights(t, "run"), "--jobmaster", c.address)...)
	f.stderr.wait(t, "waiting up to 30s for a task executor")
	f.signals.signal()
	f.mustEnd(t, 130, "", "weir: interrupted\n")
	if jobs, err := c.jobs.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("jobs %v, %v, want none", jobs, err)
	}
}

func TestRun_ExecutorThatComesLater_GetsTheJob(t *testing.T) {
	c := testCluster(t)
	f := start(false, append(slowFlights(t, "run"), "--jobmaster", c.address, "--detach")...)
	f.stderr.wait(t, "waiting up to 30s for a task executor")
	c.startExecutor("a", 1)
	f.mustEnd(t, 0, "\n", "")
	c.log.wait("job submitted", 1)
}

func TestLocal_Interrupt_CancelsTheJob(t *testing.T) {
	f := start(true, slowFlights(t, "local")...)
	f.stderr.wait(t, "all 2 tasks are RUNNING")
	f.stderr.wait(t, "| tasks 2/2 | records ") // the status line of a terminal
	f.signals.signal()
	f.mustEnd(t, 3, "is CANCELED after", "\r\x1b[K")
}

func TestRun_JobMasterThatIsGone_IsToldAndTriedAgain(t *testing.T) {
	c := testCluster(t)
	c.startExecutor("a", 1)
	front, stop := serveJobs(t, c.jobs)
	f := start(false, append(slowFlights(t, "run"), "--jobmaster", front)...)
	f.stderr.wait(t, "all 2 tasks are RUNNING")
	stop()
	f.stderr.wait(t, "; trying again\n")
	f.signals.signal()
	f.stderr.wait(t, "was not canceled: no connection to the job master at "+front)
	f.signals.signal()
	f.mustEnd(t, 130, "", "goes on as it is")
}
