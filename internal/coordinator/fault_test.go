package coordinator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	. "github.com/weirstream/weir/internal/coordinator"
)

// Tests named TestFault_Bn_ are those of the table in docs/faults.md: what went wrong in checkpointing systems before.

// driver steps a core and remembers the effects of the latest step.
type driver struct {
	t    *testing.T
	core *Core
	now  time.Time
	out  []Effect
}

func drive(t *testing.T, change func(*Config)) *driver {
	return &driver{t: t, core: manual(t, testGraph(), change), now: epoch0}
}

func (d *driver) step(ev Event) *driver {
	d.out = d.core.Step(d.now, ev)
	return d
}

func (d *driver) after(by time.Duration) *driver {
	d.now = d.now.Add(by)
	return d.step(Tick{})
}

func (d *driver) ask(r RequestID) *driver {
	return d.step(TriggerRequested{Request: r, Kind: checkpoint.Checkpoint})
}

func (d *driver) locate(id checkpoint.ID) *driver {
	return d.step(LocationReady{ID: id, Dir: fmt.Sprintf("/cp/%d", id)})
}

func (d *driver) ack(id checkpoint.ID, attempt int) *driver {
	for _, task := range tasksOf(testGraph(), attempt) {
		d.step(Ack{Epoch: 1, Attempt: task.Attempt, ID: id})
	}
	return d
}

func (d *driver) run(attempt int) *driver {
	return d.step(TasksRunning{Tasks: tasksOf(testGraph(), attempt)})
}

// lines are the effects of the latest step that begin with a word.
func (d *driver) lines(word string) (out []string) {
	for _, e := range d.out {
		if s := e.String(); strings.HasPrefix(s, word) {
			out = append(out, s)
		}
	}
	return out
}

func (d *driver) want(word string, n int) *driver {
	d.t.Helper()
	if got := d.lines(word); len(got) != n {
		d.t.Fatalf("%d effects %q, want %d; all: %v", len(got), word, n, d.out)
	}
	return d
}

func every(interval time.Duration) func(*Config) {
	return func(cfg *Config) { cfg.Options.Interval = interval }
}

func TestFault_B2_TriggerPhaseThatNeverEnds_EndsWithTheTimeout(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.Interval, cfg.Options.Timeout = 10*time.Second, time.Second })
	d.after(10*time.Second).want("InitLocation 1", 1)
	d.after(time.Second).want("checkpoint 1 aborted: EXPIRED", 1)
	d.after(9*time.Second).want("InitLocation 2", 1)
}

func TestFault_B3_StopAndStartInTheTriggerPhase_FailsTheRequestAndServesTheNext(t *testing.T) {
	d := drive(t, nil).ask(1).step(TasksStopped{})
	d.want("Reply request=1 checkpoint=1 reason=SUSPENDED", 1)
	d.run(2).ask(2).want("InitLocation 2", 1)
	d.locate(1).want("SendTrigger", 0).want("Discard 1", 1)
	d.locate(2).want("SendTrigger 2", 1)
}

func TestFault_B4_AbortInTheTriggerPhase_TellsNoTask(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.Timeout = time.Second }).ask(1)
	d.after(time.Second).want("checkpoint 1 aborted", 1).want("SendNotifyAborted", 0)
	d.locate(1).want("SendTrigger", 0)
}

func TestFault_B5_StoppedAfterTheFirstLook_SendsNoBarrier(t *testing.T) {
	d := drive(t, every(time.Second)).after(time.Second).want("InitLocation 1", 1)
	d.step(TasksStopped{})
	d.locate(1).want("SendTrigger", 0)
	d.after(time.Hour).want("InitLocation", 0)
}

func TestFault_B6_RestartWithAPendingCheckpoint_ArmsTheTimerAgain(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.Interval, cfg.Options.MinPause = 5*time.Second, time.Second })
	d.after(time.Second).locate(1).step(TasksStopped{}).want("checkpoint 1 aborted", 1)
	d.step(Discarded{ID: 1}).run(2)
	if at, ok := d.core.Deadline(); !ok || at.Sub(d.now) > 6*time.Second {
		t.Fatalf("next trigger in %s %t, want one within interval and pause", at.Sub(d.now), ok)
	}
	d.after(6*time.Second).want("InitLocation 2", 1)
}

func TestFault_B7_SavepointIsNotDelayedByMinPause(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.MinPause = time.Hour })
	d.ask(1).locate(1).ack(1, 1).step(MetadataWritten{ID: 1})
	d.step(TriggerRequested{Request: 2, Kind: checkpoint.Savepoint, Directory: "/sp"}).want("InitLocation 2 savepoint", 1)
}

func TestFault_B9_TasksThatDoNotAllRun_RefuseTheRequestAtOnce(t *testing.T) {
	d := drive(t, nil).step(TasksStopped{}).ask(1)
	d.want("Reply request=1 reason=NOT_ALL_RUNNING", 1).want("InitLocation", 0).want("SendTrigger", 0)
}

func TestFault_B10_NoAttemptBeforeAllTasksRun_AndAgainAfterARestart(t *testing.T) {
	c := New(Config{Job: testJob, Graph: testGraph(), Epoch: 1})
	for i := range 30 {
		if out := c.Step(epoch0.Add(time.Duration(i)*time.Second), Tick{}); len(out) != 0 {
			t.Fatalf("before the tasks run: %v", out)
		}
	}
	d := drive(t, every(time.Second)).step(TasksStopped{})
	d.after(time.Minute).want("InitLocation", 0)
	d.run(2).after(time.Second).want("InitLocation 1", 1)
}

// All that tasks have to say is there before the hooks have answered: the checkpoint waits for them, and completes once. Nobody is triggered
// before, so the tasks can only have finished.
func TestFault_B11_NothingOfTheTasksIsMissingBeforeTheHooksAnswer_WaitsForThem(t *testing.T) {
	d := drive(t, func(cfg *Config) {
		g := *cfg.Graph
		g.MasterHooks = []string{"lease"}
		cfg.Graph = &g
	}).ask(1).locate(1).want("CallHooks 1", 1)
	tasks := tasksOf(testGraph(), 1)
	d.step(Ack{Epoch: 1, Attempt: tasks[1].Attempt, ID: 1}).want("AckReply request=0 UNKNOWN", 1)
	for _, task := range tasks {
		d.step(TaskFinished{Attempt: task.Attempt}).want("WriteMetadata", 0)
	}
	answer := HooksCalled{ID: 1, States: []checkpoint.MasterState{{Hook: "lease", State: []byte("token")}}}
	d.step(answer).want("SendTrigger", 0).want("WriteMetadata 1", 1)
	d.step(answer).want("WriteMetadata", 0)
	d.step(MetadataWritten{ID: 1}).want("checkpoint 1 completed", 1)
	if m := d.core.Latest().Metadata; len(m.MasterStates) != 1 {
		t.Errorf("the metadata has %d master states, want 1", len(m.MasterStates))
	}
}

func TestFault_B15_EndOfTheJobWhileMetadataIsWritten_DeletesWhatWasWritten(t *testing.T) {
	d := drive(t, nil).ask(1).locate(1).ack(1, 1).step(Closed{DeleteAll: true})
	if d.core.Settled() {
		t.Fatal("nobody would wait for the write")
	}
	d.step(MetadataWritten{ID: 1}).want("Discard 1", 1).want("Reply request=1", 1)
	if d.step(Discarded{ID: 1}); !d.core.Settled() || d.core.Deleting() != 0 {
		t.Error("work is left")
	}
}

func TestFault_B16_SlowDeletions_HoldUpTriggering(t *testing.T) {
	d := drive(t, every(time.Second))
	most := 0
	for id := checkpoint.ID(1); id < 50; id++ {
		d.after(time.Second)
		d.locate(id).ack(id, 1).step(MetadataWritten{ID: id})
		most = max(most, d.core.Deleting())
	}
	if most != 2 {
		t.Errorf("%d deletions at a time, want 2 = M + 1", most)
	}
	d.after(time.Hour).want("InitLocation", 0)
	d.step(Discarded{ID: 1}).want("InitLocation", 1)
}

func TestFault_B18_EndOfDataOfAnEarlierExecution_IsForgotten(t *testing.T) {
	d := drive(t, nil).step(EndOfDataReached{}).want("InitLocation 1", 1)
	d.step(TasksStopped{}).run(2)
	d.after(time.Hour).want("InitLocation", 0)
	d.step(EndOfDataReached{}).want("InitLocation 2", 1)
	d.step(EndOfDataReached{}).want("InitLocation", 0)
}

func TestFault_B20_AckAfterExpiry_LetsTheExecutorDeleteItsFiles(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.Timeout = time.Second }).ask(1).locate(1).after(time.Second)
	d.step(Ack{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[1].Attempt, ID: 1}).want("AckReply request=0 TOO_LATE", 1)
}

func TestFault_B22_AckWhoseAnswerWasLost_IsADuplicateAndDeletesNothing(t *testing.T) {
	d := drive(t, nil).ask(1).locate(1)
	again := Ack{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[0].Attempt, ID: 1}
	d.step(again).want("AckReply request=0 KEPT", 1)
	d.step(again).want("AckReply request=0 DUPLICATE", 1)
	d.step(Decline{Epoch: 1, Attempt: again.Attempt, ID: 1, Reason: checkpoint.IOException}).want("checkpoint 1 aborted", 0)
	d.ack(1, 1).step(MetadataWritten{ID: 1}).want("checkpoint 1 completed", 1)
	d.step(again).want("AckReply request=0 DUPLICATE", 1)
}

func TestFault_B27_FailuresOfTheStorage_AreCountedWithTheirOwnReason(t *testing.T) {
	d := drive(t, func(cfg *Config) { cfg.Options.TolerableFailures = 2 })
	for id := checkpoint.ID(1); id <= 3; id++ {
		d.ask(RequestID(id)).locate(id)
		d.step(Decline{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[1].Attempt, ID: id, Reason: checkpoint.AsyncException, Message: "disk on fire"})
		d.want("FailJob", int(id)/3)
		if id == 3 && !strings.Contains(d.lines("FailJob")[0], "ASYNC_EXCEPTION: map[0]#1: disk on fire") {
			t.Errorf("the cause is lost: %s", d.lines("FailJob")[0])
		}
		d.step(Discarded{ID: id})
	}
}

func TestFault_B29_FailuresOfTheMetadataWrite_AreCountedAndTold(t *testing.T) {
	for _, outcome := range []WriteOutcome{NotWritten, Uncertain} {
		d := drive(t, func(cfg *Config) { cfg.Options.TolerableFailures = 1 })
		for id := checkpoint.ID(1); id <= 2; id++ {
			d.ask(RequestID(id)).locate(id).ack(id, 1)
			d.step(MetadataWritten{ID: id, Outcome: outcome, Err: "no quorum"}).want("SendNotifyAborted", 1).want("FailJob", int(id)-1)
			d.step(Discarded{ID: id})
		}
	}
}

func TestFault_B30_StatisticsSayCompletedBeforeTheCallerHears(t *testing.T) {
	d := drive(t, nil).ask(1).locate(1).ack(1, 1).step(MetadataWritten{ID: 1}).want("Reply request=1 checkpoint=1", 1)
	if h := d.core.History(); h[0].State != StateCompleted || d.core.Counts().Completed != 1 {
		t.Errorf("the caller is answered while history says %s", h[0].State)
	}
	if !strings.HasPrefix(d.out[0].String(), "checkpoint 1 completed") {
		t.Errorf("the first effect is %s", d.out[0])
	}
}

func TestFault_B34_AbortCarriesTheLatestCompleted_AndCompletionIsRepeated(t *testing.T) {
	d := drive(t, nil).ask(1).locate(1).ack(1, 1).step(MetadataWritten{ID: 1}).want("SendNotifyComplete 1", 1)
	d.after(time.Second).want("SendNotifyComplete 1", 1)
	d.ask(2).locate(2)
	d.step(Decline{Epoch: 1, Attempt: tasksOf(testGraph(), 1)[0].Attempt, ID: 2}).want("SendNotifyAborted 2 latest=1", 1)
}

func withHook(cfg *Config) {
	cfg.Graph = testGraph()
	cfg.Graph.MasterHooks = []string{"lease"}
}

func TestFault_B4_AbortBeforeTheHooks_CallsNone(t *testing.T) {
	d := drive(t, withHook).ask(1).step(TasksStopped{})
	d.locate(1).want("CallHooks", 0).want("Discard 1", 1)
	d.run(2).ask(2).locate(2).want("CallHooks 2", 1).step(TasksStopped{})
	d.step(HooksCalled{ID: 2}).want("SendTrigger", 0)
}

func TestFault_B11_AcksBeforeTheHooksHaveAnswered_CompleteNothing(t *testing.T) {
	d := drive(t, withHook).ask(1).locate(1).want("CallHooks 1", 1)
	for _, task := range tasksOf(testGraph(), 1) {
		d.step(Ack{Epoch: 1, Attempt: task.Attempt, ID: 1}).want("AckReply request=0 UNKNOWN", 1).want("WriteMetadata", 0)
	}
	d.step(HooksCalled{ID: 1, States: []checkpoint.MasterState{{Hook: "lease", State: []byte("x")}}}).want("SendTrigger 1", 1).want("WriteMetadata", 0)
	d.ack(1, 1).want("WriteMetadata 1 dir=/cp/1 vertices=2 subtasks=3 hooks=1", 1)
	d.step(MetadataWritten{ID: 1}).want("checkpoint 1 completed", 1)
	d.step(HooksCalled{ID: 1}).want("checkpoint 1 completed", 0)
}
