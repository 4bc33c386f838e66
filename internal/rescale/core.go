package rescale

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

const (
	// SlotTimeout is how long the tasks of a new plan may wait for slots before the job goes back to the old one.
	SlotTimeout = 30 * time.Second
	// lookAgain is how long a request that waits for slots waits between two looks at them.
	lookAgain = 250 * time.Millisecond
)

// Plan is how a job runs: what was chosen, and the graph that came of it.
type Plan struct {
	Parallelism int            // as in job.Options
	Operators   map[string]int // as OperatorParallelism in job.Options
	Graph       *job.Graph
}

// Core is the rescale of one job. It is not safe for concurrent use: one loop owns it.
type Core struct {
	phase    phase
	request  gateway.RescaleJob
	to       int // see Requested
	old, new Plan
	until    time.Time // of WAITING and STARTING; zero: no limit runs
	lookAt   time.Time // in WAITING
	estimate gateway.RescaleEstimate
	report   gateway.RescaleReport
	stopped  time.Time // when the tasks were told to stop
	cause    string    // why it goes back
	out      []Effect
}

type phase int

const (
	idle phase = iota
	planning
	waiting
	checkpointing
	recording
	starting
	goingBack
	returning
)

// Active reports whether a rescale is going on.
func (c *Core) Active() bool { return c.phase != idle }

// Step takes an event and returns what is to be done about it, in this order.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	switch ev := ev.(type) {
	case Requested:
		c.requested(ev)
	case Planned:
		c.planned(ev)
	case Surveyed:
		c.surveyed(now, ev)
	case Checkpointed:
		c.checkpointed(ev)
	case Recorded:
		c.recorded(now)
	case Short:
		if c.phase == starting && c.until.IsZero() {
			c.until = now.Add(SlotTimeout)
		}
	case Deployed:
		c.until = time.Time{}
	case Running:
		c.running(now, ev)
	case Failed:
		if c.phase == starting {
			c.goBack(ev.Failure.String())
		}
	case Ended:
		c.ended(ev)
	case Tick:
		c.tick(now)
	default:
		panic(fmt.Sprintf("rescale: unknown event %T", ev))
	}
	out := c.out
	c.out = nil
	return out
}

// Deadline is when the core needs the next Tick, if at all.
func (c *Core) Deadline() (time.Time, bool) {
	switch c.phase {
	case waiting:
		return c.lookAt, true
	case starting:
		return c.until, !c.until.IsZero()
	default:
		return time.Time{}, false
	}
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

// requested begins, or refuses what can be refused at once.
func (c *Core) requested(ev Requested) {
	r := ev.Request
	plan, err := choose(r, ev.Plan)
	switch {
	case c.Active():
		err = c.refusal(gateway.FailedPrecondition, gateway.ReasonRescaling, r.Job, "job %s is being rescaled", "wait for the end of that", r.Job)
	case ev.NotRunning != "":
		err = c.refusal(gateway.FailedPrecondition, gateway.ReasonJobNotRunning, r.Job, "job %s cannot be rescaled: %s", "try again when all its tasks are running", r.Job, ev.NotRunning)
	}
	if err != nil {
		c.emit(Answer{To: ev.To, Err: err})
		return
	}
	*c = Core{phase: planning, request: r, to: ev.To, old: ev.Plan, new: plan}
	c.emit(CallPlan{Parallelism: plan.Parallelism, Operators: plan.Operators})
}

func (c *Core) refusal(code gateway.Code, reason string, id job.ID, message, remedy string, args ...any) *gateway.Error {
	return &gateway.Error{Code: code, Reason: reason, Job: id, Message: fmt.Sprintf(message, args...), Remedy: remedy}
}

// choose makes the new choice out of the old one. A parallelism of the job makes what was chosen for single vertices void.
func choose(r gateway.RescaleJob, now Plan) (Plan, error) {
	bad := func(message, remedy string, args ...any) (Plan, error) {
		return Plan{}, (&Core{}).refusal(gateway.InvalidArgument, gateway.ReasonBadParameter, r.Job, message, remedy, args...)
	}
	if r.Parallelism == 0 && len(r.Vertices) == 0 {
		return bad("no parallelism is asked for", "give --parallelism, or --vertex VERTEX=N")
	}
	limit := 0
	for _, v := range now.Graph.Vertices {
		limit = max(limit, v.MaxParallelism)
	}
	if r.Parallelism < 0 || r.Parallelism > limit {
		return bad("parallelism %d is asked for, and the job has %d key groups", fmt.Sprintf("choose 1 to %d", limit), r.Parallelism, limit)
	}
	out := Plan{Parallelism: now.Parallelism, Operators: maps.Clone(now.Operators)}
	if r.Parallelism > 0 {
		out.Parallelism, out.Operators = r.Parallelism, nil
	}
	for _, id := range slices.Sorted(maps.Keys(r.Vertices)) {
		v, n := now.Graph.Vertex(id), r.Vertices[id]
		switch {
		case v == nil:
			return bad("job %s has no vertex %s", "weir job ID lists its vertices", r.Job, id)
		case n < 1 || n > v.MaxParallelism:
			return bad("parallelism %d is asked for vertex %s, which has %d key groups", fmt.Sprintf("choose 1 to %d", v.MaxParallelism), n, id, v.MaxParallelism)
		}
		for _, op := range v.Operators {
			if out.Operators == nil {
				out.Operators = map[string]int{}
			}
			out.Operators[op.ID] = n
		}
	}
	return out, nil
}

// planned takes the new graph. It reads the same input as the old one: the splits are those that were found at submission.
func (c *Core) planned(ev Planned) {
	if c.phase != planning {
		return
	}
	err := ev.Err
	if err == nil {
		c.new.Graph, err = carry(c.request.Job, c.old.Graph, ev.Graph)
	}
	if err != nil {
		c.done(Answer{Err: err})
		return
	}
	c.emit(Survey{Graph: c.new.Graph})
}

// surveyed decides whether there are slots enough. While a request waits for them it is called again and again.
func (c *Core) surveyed(now time.Time, ev Surveyed) {
	if c.phase != planning && c.phase != waiting {
		return
	}
	c.estimate = ev.Estimate
	if ev.Problem != nil {
		c.done(Answer{Err: &gateway.Error{
			Code: gateway.FailedPrecondition, Reason: gateway.ReasonBadParameter, Job: c.request.Job, Message: ev.Problem.Error(), Remedy: "the job goes on as it is",
		}})
		return
	}
	if c.request.DryRun {
		c.done(Answer{})
		return
	}
	e := ev.Estimate
	if e.SlotsNeeded <= e.SlotsHeld+e.SlotsFree {
		c.phase, c.until = checkpointing, time.Time{}
		c.emit(TakeCheckpoint{})
		return
	}
	if c.phase == planning && c.request.Wait > 0 {
		c.phase, c.until = waiting, now.Add(c.request.Wait)
		c.emit(Note(fmt.Sprintf("rescale waits for %d more slots, at most %s", e.SlotsNeeded-e.SlotsHeld-e.SlotsFree, c.request.Wait)))
	}
	if c.phase == waiting && now.Before(c.until) {
		c.lookAt = now.Add(min(lookAgain, c.until.Sub(now)))
		return
	}
	c.done(Answer{Err: c.refusal(gateway.ResourceExhausted, gateway.ReasonTooFewSlots, c.request.Job, "job %s would need %d slots; it has %d, and %d are free",
		"start more task executors, choose a lower parallelism, or let it wait for slots with --wait", c.request.Job, e.SlotsNeeded, e.SlotsHeld, e.SlotsFree)})
}

func (c *Core) tick(now time.Time) {
	switch {
	case c.phase == waiting && !now.Before(c.lookAt):
		c.emit(Survey{Graph: c.new.Graph})
	case c.phase == starting && !c.until.IsZero() && !now.Before(c.until):
		c.goBack(fmt.Sprintf("the slots have not come within %s", SlotTimeout))
	}
}

// checkpointed takes the end of the checkpoint that the new tasks will start from. If there is none the job has noticed nothing.
func (c *Core) checkpointed(ev Checkpointed) {
	if c.phase != checkpointing {
		return
	}
	if ev.Problem != "" {
		c.done(Answer{Err: c.refusal(gateway.Aborted, gateway.ReasonCheckpointFailed, c.request.Job, "job %s was not rescaled: its checkpoint did not complete: %s",
			"the job goes on as it is; try again", c.request.Job, ev.Problem)})
		return
	}
	c.report.Checkpoint, c.report.CheckpointDuration = ev.ID, ev.Duration
	c.phase = recording
	c.emit(Record{Plan: c.new})
}

// recorded: whatever happens now, the next job master goes on by the plan that was recorded.
func (c *Core) recorded(now time.Time) {
	switch c.phase {
	case recording:
		c.phase, c.stopped = starting, now
		c.emit(Replan{Graph: c.new.Graph, Trial: true})
	case goingBack:
		c.phase = returning
		c.emit(Replan{Graph: c.old.Graph})
	default: // of another time
	}
}

func (c *Core) goBack(cause string) {
	c.phase, c.cause, c.until = goingBack, cause, time.Time{}
	c.emit(Note("rescale goes back to the old plan: " + cause))
	c.emit(Record{Plan: c.old})
}

func (c *Core) running(now time.Time, ev Running) {
	switch {
	case c.phase == starting && ev.Graph == c.new.Graph:
		c.report.Checkpoint, c.report.Pause = ev.Checkpoint, now.Sub(c.stopped)
		c.report.Moved, c.report.Stayed = ev.Moved, ev.Stayed
		c.emit(Note(fmt.Sprintf("rescaled: all tasks run again after %s, %d bytes of state have moved, %d have stayed",
			c.report.Pause.Round(time.Millisecond), ev.Moved, ev.Stayed)))
		report := c.report
		c.done(Answer{Report: &report})
	case c.phase == returning && ev.Graph == c.old.Graph:
		c.done(Answer{Err: c.wentBack()})
	default: // the tasks of a restart
	}
}

func (c *Core) wentBack() *gateway.Error {
	return c.refusal(gateway.Aborted, gateway.ReasonRescaleFailed, c.request.Job, "job %s runs again by its old plan: %s",
		"see to the cause and try again", c.request.Job, c.cause)
}

func (c *Core) ended(ev Ended) {
	if c.Active() {
		c.done(Answer{Err: c.refusal(gateway.FailedPrecondition, gateway.ReasonJobTerminal, c.request.Job, "job %s was not rescaled: it is %s",
			"", c.request.Job, ev.State)})
	}
}

// done answers and goes back to idle.
func (c *Core) done(a Answer) {
	a.To, a.Estimate = c.to, c.estimate
	c.emit(a)
	out := c.out
	*c = Core{out: out}
}

// carry gives the new graph what the old one knows, and refuses one of another build of the job.
func carry(id job.ID, old, next *job.Graph) (*job.Graph, error) {
	if next.Fingerprint == old.Fingerprint {
		return nil, (&Core{}).refusal(gateway.InvalidArgument, gateway.ReasonBadParameter, id, "job %s runs with this parallelism already", "choose another one", id)
	}
	g := *next
	g.Vertices = slices.Clone(next.Vertices)
	operators := 0
	for i := range g.Vertices {
		v := &g.Vertices[i]
		for k, op := range v.Operators {
			was := old.VertexOf(op.ID)
			if was == nil {
				return nil, otherBuild(id, op.ID)
			}
			at := slices.IndexFunc(was.Operators, func(o job.Operator) bool { return o.ID == op.ID })
			if o := was.Operators[at]; o.Kind != op.Kind || o.Signature != op.Signature || o.Stateful != op.Stateful || !slices.Equal(o.States, op.States) {
				return nil, otherBuild(id, op.ID)
			}
			if k == 0 && at == 0 {
				v.Splits = was.Splits
			}
			operators++
		}
	}
	for _, v := range old.Vertices {
		operators -= len(v.Operators)
	}
	if operators != 0 {
		return nil, otherBuild(id, old.Name)
	}
	return &g, nil
}

func otherBuild(id job.ID, what string) error {
	return &gateway.Error{
		Code: gateway.FailedPrecondition, Reason: gateway.ReasonFingerprint, Job: id,
		Message: fmt.Sprintf("the executors have another build of job %s: %s differs", id, what), Remedy: "start executors with the build that the job was submitted with",
	}
}
