package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

func partOf(vertex string, subtask int, latency, startDelay, alignment, sync, async time.Duration) gateway.SubtaskCheckpoint {
	return gateway.SubtaskCheckpoint{
		Task: job.TaskID{Vertex: job.VertexID(vertex), Subtask: subtask}, Acknowledged: latency > 0, Latency: latency,
		Metrics: checkpoint.Metrics{StartDelay: startDelay, Alignment: alignment, Sync: sync, Async: async},
	}
}

func TestExplain(t *testing.T) {
	const ms = time.Millisecond
	now := time.UnixMilli(1_700_000_010_000)
	base := gateway.CheckpointStatus{ID: 7, Kind: checkpoint.Checkpoint, Triggered: now.Add(-5 * time.Second), Sent: 1, Tasks: 2, StateBytes: 2048}
	with := func(state gateway.CheckpointState, acked int, took time.Duration, failure string) gateway.CheckpointStatus {
		c := base
		c.State, c.Acknowledged, c.Duration, c.Failure = state, acked, took, failure
		return c
	}
	for name, c := range map[string]struct {
		status   gateway.CheckpointStatus
		subtasks []gateway.SubtaskCheckpoint
		want     string
	}{
		"slow state": {
			with(gateway.CheckpointCompleted, 2, 100*ms, ""),
			[]gateway.SubtaskCheckpoint{partOf("src", 0, 10*ms, ms, 0, ms, 7*ms), partOf("map", 1, 90*ms, 2*ms, 5*ms, 3*ms, 75*ms)},
			`checkpoint 7 of 2 tasks and 2.0 KiB completed in 100ms.
The last acknowledgement came from map[1], 90ms after the trigger, 80ms behind src[0].
 75% 75ms (async): the snapshot was written beside it.
 10% 10ms (metadata): the job master wrote the metadata.
  5% 5ms (alignment): it waited for the barriers of its other inputs.
  5% 5ms (ack): the acknowledgement was on the way.
  3% 3ms (sync): it stood still to take the snapshot.
  2% 2ms (start delay): its first barrier was on the way.
Writing the state took the time: look at its size and at the storage.`,
		},
		"back pressure": {
			with(gateway.CheckpointCompleted, 2, time.Second, ""),
			[]gateway.SubtaskCheckpoint{partOf("src", 0, ms, 0, 0, 0, ms), partOf("map", 0, 995*ms, 990*ms, 0, 0, 5*ms)},
			`checkpoint 7 of 2 tasks and 2.0 KiB completed in 1s.
The last acknowledgement came from map[0], 995ms after the trigger, 994ms behind src[0].
 99% 990ms (start delay): its first barrier was on the way.
  1% 5ms (async): the snapshot was written beside it.
  1% 5ms (metadata): the job master wrote the metadata.
Barriers travel with the records: look for a slow operator in front of it (back pressure).`,
		},
		"expired": {
			with(gateway.CheckpointAborted, 1, time.Minute, "EXPIRED: too slow"),
			[]gateway.SubtaskCheckpoint{partOf("src", 0, 10*ms, 0, 0, 10*ms, 0), partOf("map", 0, 0, 0, 0, 0, 0)},
			`checkpoint 7 of 2 tasks and 2.0 KiB was aborted after 1m0s.
It failed: EXPIRED: too slow.
1 of 2 tasks had not acknowledged: map[0].
The last acknowledgement came from src[0], 10ms after the trigger.
100% 10ms (sync): it stood still to take the snapshot.`,
		},
		"under way, nobody has acknowledged": {
			with(gateway.CheckpointPending, 0, 0, ""),
			[]gateway.SubtaskCheckpoint{partOf("src", 0, 0, 0, 0, 0, 0), partOf("map", 0, 0, 0, 0, 0, 0)},
			"checkpoint 7 of 2 tasks and 2.0 KiB is under way, triggered 5s ago.\n2 of 2 tasks have not acknowledged: src[0] map[0].",
		},
		"metadata is being written": {
			with(gateway.CheckpointFinalizing, 2, 0, ""), []gateway.SubtaskCheckpoint{partOf("src", 0, 10*ms, 10*ms, 0, 0, 0)},
			`checkpoint 7 of 2 tasks and 2.0 KiB has all acknowledgements and waits for its metadata to be written, since its trigger 5s ago.
The last acknowledgement came from src[0], 10ms after the trigger.
100% 10ms (start delay): its first barrier was on the way.
Barriers travel with the records: look for a slow operator in front of it (back pressure).`,
		},
		"too old for details": {
			with(gateway.CheckpointCompleted, 2, 10*ms, ""), nil,
			"checkpoint 7 of 2 tasks and 2.0 KiB completed in 10ms.\nThe details of its subtasks are no longer remembered.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, strings.Join(explain(c.status, c.subtasks, now), "\n")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A subtask that acknowledged too late is where the time went.
func TestExplain_LateAcknowledgement(t *testing.T) {
	late := partOf("map", 0, 80*time.Second, 0, 0, 0, 80*time.Second)
	late.Acknowledged, late.Late = false, true
	c := gateway.CheckpointStatus{
		ID: 7, Kind: checkpoint.Checkpoint, State: gateway.CheckpointAborted, Tasks: 2, Acknowledged: 1, Sent: time.Millisecond, Duration: time.Minute,
		Failure: "EXPIRED: too slow",
	}
	want := `checkpoint 7 of 2 tasks and 0 B was aborted after 1m0s.
It failed: EXPIRED: too slow.
1 of 2 tasks had not acknowledged: map[0] (too late).
The last acknowledgement came from map[0], 1m20s after the trigger and too late, 1m20s behind src[0].
100% 1m20s (async): the snapshot was written beside it.
Writing the state took the time: look at its size and at the storage.`
	got := explain(c, []gateway.SubtaskCheckpoint{partOf("src", 0, 10*time.Millisecond, 0, 0, 10*time.Millisecond, 0), late}, time.Now())
	if d := cmp.Diff(want, strings.Join(got, "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExplain_WhatNoTaskWasToldOf(t *testing.T) {
	c := gateway.CheckpointStatus{ID: 7, Kind: checkpoint.Checkpoint, State: gateway.CheckpointAborted, Tasks: 2, Duration: time.Minute, Failure: "EXPIRED: too slow"}
	subtasks := []gateway.SubtaskCheckpoint{partOf("src", 0, 0, 0, 0, 0, 0)}
	const told = "told of it: its directory"
	if got := strings.Join(explain(c, subtasks, time.Now()), "\n"); !strings.Contains(got, "No task had been "+told) || strings.Contains(got, "acknowledged") {
		t.Error(got)
	}
	c.State = gateway.CheckpointPending
	if got := strings.Join(explain(c, subtasks, time.Now()), "\n"); !strings.Contains(got, "No task has been "+told) || strings.Contains(got, "acknowledged") {
		t.Error(got)
	}
}

func TestExplain_SlowDirectoryAndNotification(t *testing.T) {
	const ms = time.Millisecond
	c := gateway.CheckpointStatus{
		ID: 7, Kind: checkpoint.Checkpoint, State: gateway.CheckpointCompleted, Tasks: 1, Acknowledged: 1, Sent: 80 * ms, Duration: 100 * ms, Notified: 130 * ms,
	}
	want := `checkpoint 7 of 1 tasks and 0 B completed in 100ms.
The last acknowledgement came from src[0], 90ms after the trigger.
 80% 80ms (directory): its directory was made, and master hooks were called.
 10% 10ms (metadata): the job master wrote the metadata.
  5% 5ms (start delay): its first barrier was on the way.
  5% 5ms (async): the snapshot was written beside it.
Every task knew of its completion 30ms after it.
The storage or a master hook took the time: look at how long it takes to make a directory, and at what the hooks do.`
	got := explain(c, []gateway.SubtaskCheckpoint{partOf("src", 0, 90*ms, 85*ms, 0, 0, 5*ms)}, time.Now())
	if d := cmp.Diff(want, strings.Join(got, "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExplain_ManyMissingTasks_NamesTheFirst(t *testing.T) {
	var subtasks []gateway.SubtaskCheckpoint
	for i := range 9 {
		subtasks = append(subtasks, partOf("m", i, 0, 0, 0, 0, 0))
	}
	got := explainMissing(gateway.CheckpointStatus{Tasks: 9}, subtasks)
	if want := "9 of 9 tasks have not acknowledged: m[0] m[1] m[2] m[3] m[4] and 4 more."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The phases of a completed checkpoint are all of its time, whatever the clocks of the executors say.
func TestPhasesOf_AddUpToTheDuration(t *testing.T) {
	c := gateway.CheckpointStatus{State: gateway.CheckpointCompleted, Tasks: 1, Acknowledged: 1, Duration: 50 * time.Millisecond}
	var sum time.Duration
	for _, p := range phasesOf(c, []gateway.SubtaskCheckpoint{partOf("m", 0, 40*time.Millisecond, 1, 2, 3, 4)}) {
		if sum += p.took; p.took < 0 {
			t.Errorf("%s took %s", p.name, p.took)
		}
	}
	if sum != c.Duration {
		t.Errorf("the phases are %s of %s", sum, c.Duration)
	}
}
