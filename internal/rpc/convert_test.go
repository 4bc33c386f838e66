package rpc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// conversion is an encode and a decode function with their types hidden.
type conversion struct {
	name      string
	roundTrip func(t *testing.T, r *rand.Rand)
	message   func() proto.Message               // an empty one
	sample    func(r *rand.Rand) proto.Message   // a valid one
	decode    func(m proto.Message) (any, error) // nil is the nil message
}

func convert[D any, P interface {
	*M
	proto.Message
}, M any](name string, encode func(D) P, decode func(P) (D, error)) conversion {
	return conversion{
		name: name,
		roundTrip: func(t *testing.T, r *rand.Rand) {
			want := randomValue[D](r)
			wire, err := proto.Marshal(encode(want))
			if err != nil {
				t.Fatal(err)
			}
			received := P(new(M))
			if err := proto.Unmarshal(wire, received); err != nil {
				t.Fatal(err)
			}
			got, err := decode(received)
			if err != nil {
				t.Fatalf("decode %+v: %v", want, err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after the round trip (-want +got):\n%s", diff)
			}
		},
		message: func() proto.Message { return P(new(M)) },
		sample:  func(r *rand.Rand) proto.Message { return encode(randomValue[D](r)) },
		decode: func(m proto.Message) (any, error) {
			if m == nil {
				return decode(nil)
			}
			return decode(m.(P))
		},
	}
}

// always is for decode functions that take everything.
func always[P, D any](decode func(P) D) func(P) (D, error) {
	return func(p P) (D, error) { return decode(p), nil }
}

func conversions() []conversion {
	return []conversion{
		convert("AttemptId", encodeAttempt, decodeAttempt),
		convert("Failure", encodeFailure, decodeFailure),
		convert("JobOptions", encodeOptions, always(decodeOptions)),
		convert("Graph", func(g job.Graph) *pb.Graph { return encodeGraph(&g) }, func(p *pb.Graph) (job.Graph, error) {
			g, err := decodeGraph(p)
			if err != nil {
				return job.Graph{}, err
			}
			return *g, nil
		}),
		convert("ItemsHandle", encodeItems, decodeItems),
		convert("KeyedHandle", encodeKeyed, decodeKeyed),
		convert("SubtaskState", encodeSubtaskState, decodeSubtaskState),
		convert("OperatorRestore", encodeOperatorRestore, decodeOperatorRestore),
		convert("CheckpointMetrics", encodeMetrics, always(decodeMetrics)),
		convert("PlanJob", encodePlanJob, decodePlanJob),
		convert("TaskDeployment", encodeDeployment, decodeDeployment),
		convert("DeployTasks", encodeDeployTasks, decodeDeployTasks),
		convert("CancelTasks", encodeCancelTasks, decodeCancelTasks),
		convert("TriggerCheckpoint", encodeTrigger, decodeTrigger),
		convert("NotifyCheckpointComplete", encodeComplete, decodeComplete),
		convert("NotifyCheckpointAborted", encodeAborted, decodeAborted),
		convert("Registration", encodeRegistration, decodeRegistration),
		convert("Registered", encodeRegistered, decodeRegistered),
		convert("Heartbeat", encodeHeartbeat, decodeHeartbeat),
		convert("HeartbeatAnswer", encodeHeartbeatAnswer, decodeHeartbeatAnswer),
		convert("TaskUpdate", encodeTaskUpdate, decodeTaskUpdate),
		convert("Ack", encodeAck, decodeAck),
		convert("Decline", encodeDecline, decodeDecline),
		convert("Submission", encodeSubmission, decodeSubmission),
		convert("RescaleJob", encodeRescaleJob, decodeRescaleJob),
		convert("RescaleResult", encodeRescaleResult, always(decodeRescaleResult)),
		convert("JobStatus", encodeJobStatus, always(decodeJobStatus)),
		convert("JobEvent", encodeJobEvent, always(decodeJobEvent)),
		convert("CheckpointStatus", encodeCheckpointStatus, always(decodeCheckpointStatus)),
		convert("SubtaskCheckpoint", encodeSubtaskCheckpoint, always(decodeSubtaskCheckpoint)),
		convert("ExecutorStatus", encodeExecutorStatus, always(decodeExecutorStatus)),
	}
}

func TestConversions_RoundTrip(t *testing.T) {
	for _, c := range conversions() {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(200) {
				c.roundTrip(t, rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func TestConversions_OfNoMessageAndOfAnEmptyOne_Agree(t *testing.T) {
	// What an absent message leads to must not depend on whether the sender left it out or sent it without fields. These three say
	// something by being there.
	differ := map[string]bool{"Failure": true, "Graph": true}
	for _, c := range conversions() {
		t.Run(c.name, func(t *testing.T) {
			none, noneErr := c.decode(nil)
			empty, emptyErr := c.decode(c.message())
			if !differ[c.name] && ((noneErr == nil) != (emptyErr == nil) || !cmp.Equal(none, empty)) {
				t.Errorf("no message gives %+v, %v; an empty one gives %+v, %v", none, noneErr, empty, emptyErr)
			}
		})
	}
}

func FuzzConversions(f *testing.F) {
	all := conversions()
	for i, c := range all {
		for seed := range uint64(3) {
			wire, err := proto.Marshal(c.sample(rand.New(rand.NewPCG(seed, 2))))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), wire)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, wire []byte) {
		c := all[int(i)%len(all)]
		m := c.message()
		if proto.Unmarshal(wire, m) != nil {
			return
		}
		_, _ = c.decode(m) // must not panic
	})
}

func TestDecode_RefusesWhatIsWrong(t *testing.T) {
	attempt := func() *pb.AttemptId { return &pb.AttemptId{JobId: "j", VertexId: "v", Attempt: 1} }
	graph := func() *pb.Graph {
		return &pb.Graph{Vertices: []*pb.Vertex{{Id: "v", Parallelism: 2, MaxParallelism: 8}}}
	}
	deploy := func(d *pb.TaskDeployment) error {
		_, err := decodeDeployTasks(&pb.DeployTasksRequest{JobId: "j", Graph: graph(), Tasks: []*pb.TaskDeployment{d}})
		return err
	}
	state := func(s *pb.OperatorSubtaskState) error {
		_, err := decodeAck(&pb.AcknowledgeCheckpointRequest{
			Attempt: attempt(), CheckpointId: 1, State: &pb.SubtaskState{Operators: []*pb.OperatorSubtaskState{s}},
		})
		return err
	}
	inGraph := func(change func(*pb.Graph)) error {
		g := graph()
		change(g)
		_, err := decodeGraph(g)
		return err
	}
	second := func(_ any, err error) error { return err }
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"no attempt", second(decodeAttempt(nil)), "without a job id"},
		{"attempt 0", second(decodeAttempt(&pb.AttemptId{JobId: "j", VertexId: "v"})), "v[0]#0"},
		{"negative subtask", second(decodeAttempt(&pb.AttemptId{JobId: "j", VertexId: "v", Attempt: 1, Subtask: -1})), "v[-1]#1"},
		{"nil in a list", second(decodeCancelTasks(&pb.CancelTasksRequest{Attempts: []*pb.AttemptId{attempt(), nil}})), "attempt 1:"},
		{"checkpoint 0", second(decodeComplete(&pb.NotifyCheckpointCompleteRequest{})), "checkpoint id is 0"},
		{"no state", second(decodeAck(&pb.AcknowledgeCheckpointRequest{Attempt: attempt(), CheckpointId: 1})), "has no state"},
		{"path leaves the directory", state(&pb.OperatorSubtaskState{OperatorId: "o", Items: &pb.ItemsHandle{Handle: &pb.Handle{Path: "../x"}}}), "../x"},
		{"offset behind the end", state(&pb.OperatorSubtaskState{OperatorId: "o", Items: &pb.ItemsHandle{
			Handle: &pb.Handle{Inline: []byte("ab"), Length: 2}, Offsets: []int64{0, 3}}}), "offset 1 is 3"},
		{"key groups beyond the highest", state(&pb.OperatorSubtaskState{OperatorId: "o", Keyed: &pb.KeyedHandle{
			FirstKeyGroup: math.MaxInt32, Offsets: []int64{0, 0}}}), "key groups"},
		{"state of no operator", state(&pb.OperatorSubtaskState{}), "no operator id"},
		{"unknown task state", second(decodeTaskUpdate(&pb.UpdateTaskStateRequest{Attempt: attempt(), State: 77})), "task state 77"},
		{"no task state", second(decodeTaskUpdate(&pb.UpdateTaskStateRequest{Attempt: attempt()})), "task state 0"},
		{"failure without a class", second(decodeFailure(&pb.Failure{Message: "x"})), "failure class 0"},
		{"unknown verdict", second(decodeVerdict(&pb.AcknowledgeCheckpointResponse{Verdict: 6})), "verdict 6"},
		{"no slots", second(decodeRegistration(&pb.RegisterTaskExecutorRequest{ExecutorId: "e", Incarnation: "i", Address: "a"})), "0 slots"},
		{"no heartbeat interval", second(decodeRegistered(&pb.RegisterTaskExecutorResponse{})), "heartbeat interval is 0s"},
		{"no graph", second(decodeGraph(nil)), "no graph"},
		{"parallelism 0", inGraph(func(g *pb.Graph) { g.Vertices[0].Parallelism = 0 }), "parallelism of v is 0"},
		{"max parallelism", inGraph(func(g *pb.Graph) { g.Vertices[0].MaxParallelism = job.MaxMaxParallelism + 1 }), "at most 32768"},
		{"vertex twice", inGraph(func(g *pb.Graph) { g.Vertices = append(g.Vertices, g.Vertices[0]) }), "occurs twice"},
		{"edge to nowhere", inGraph(func(g *pb.Graph) { g.Edges = []*pb.Edge{{FromVertex: "v", ToVertex: "w", Partitioning: 1}} }), `vertex "w"`},
		{"edge without partitioning", inGraph(func(g *pb.Graph) { g.Edges = []*pb.Edge{{FromVertex: "v", ToVertex: "v"}} }), "partitioning 0"},
		{"task of another job", deploy(&pb.TaskDeployment{Attempt: &pb.AttemptId{JobId: "k", VertexId: "v", Attempt: 1}}), `job "k"`},
		{"task outside the graph", deploy(&pb.TaskDeployment{Attempt: &pb.AttemptId{JobId: "j", VertexId: "v", Attempt: 1, Subtask: 2}}), "v[2]#1"},
		{"split that is not there", deploy(&pb.TaskDeployment{Attempt: attempt(), Splits: []int32{0}}), "split 0"},
		{"state without a checkpoint", deploy(&pb.TaskDeployment{Attempt: attempt(), Restore: []*pb.OperatorRestore{{OperatorId: "o"}}}), "checkpoint id is 0"},
		{"operator restored twice", deploy(&pb.TaskDeployment{Attempt: attempt(), RestoredCheckpointId: 1, Restore: []*pb.OperatorRestore{
			{OperatorId: "o"}, {OperatorId: "o"}}}), "occurs twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) {
				t.Errorf("error is %v, want it to contain %q", tt.err, tt.want)
			}
		})
	}
}

func TestEncode_OfWhatDoesNotFit_StaysWrongOrSet(t *testing.T) {
	o := job.Options{Parallelism: math.MaxInt64}
	o.Checkpoint.Interval = -1
	o.Checkpoint.MinPause = time.Millisecond + 1
	o.Exchange.Linger = 1
	o.Restart.MaxDelay = math.MaxInt64
	got := decodeOptions(encodeOptions(o))
	want := job.Options{Parallelism: math.MaxInt32}
	want.Checkpoint.Interval = -time.Millisecond
	want.Checkpoint.MinPause = 2 * time.Millisecond
	want.Exchange.Linger = time.Microsecond
	want.Restart.MaxDelay = math.MaxInt64
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := decodeDuration(math.MinInt64, time.Millisecond); got != math.MinInt64 {
		t.Errorf("the most negative duration became %s", got)
	}
	if got := encodeFailure(job.Failure{Message: "bad \xff byte"}).Message; got != "bad \uFFFD byte" {
		t.Errorf("message became %q", got)
	}
}

func TestDecode_OfAStatusOfANewerBuild_ShowsUnknown(t *testing.T) {
	s := decodeJobStatus(&pb.JobStatus{State: 99, LastCheckpoint: &pb.CheckpointSummary{State: 99, Kind: 99}})
	if s.State.String() != "UNKNOWN" || s.Last.State.String() != "UNKNOWN" || s.Last.Kind.String() != "unknown" {
		t.Errorf("states are %s, %s and %s", s.State, s.Last.State, s.Last.Kind)
	}
}

func TestEnums_HaveTheNamesOfTheDomain(t *testing.T) {
	tests := []struct {
		prefix string
		names  map[int32]string
		domain func(int32) fmt.Stringer
	}{
		{"TASK_STATE_", pb.TaskState_name, func(n int32) fmt.Stringer { return job.TaskState(n) }},
		{"JOB_STATE_", pb.JobState_name, func(n int32) fmt.Stringer { return job.State(n) }},
		{"FAILURE_CLASS_", pb.FailureClass_name, func(n int32) fmt.Stringer { return job.FailureClass(n) }},
		{"PARTITIONING_", pb.Partitioning_name, func(n int32) fmt.Stringer { return job.Partitioning(n) }},
		{"CHECKPOINT_KIND_", pb.CheckpointKind_name, func(n int32) fmt.Stringer { return checkpoint.Kind(n) }},
		{"CHECKPOINT_STATE_", pb.CheckpointState_name, func(n int32) fmt.Stringer { return gateway.CheckpointState(n) }},
		{"ACK_VERDICT_", pb.AckVerdict_name, func(n int32) fmt.Stringer { return checkpoint.Verdict(n) }},
	}
	for _, tt := range tests {
		for n := int32(1); n < int32(len(tt.names)); n++ {
			if got := tt.prefix + strings.ToUpper(tt.domain(n).String()); got != tt.names[n] {
				t.Errorf("number %d is %s on the wire and %s in the domain", n, tt.names[n], got)
			}
		}
		past := tt.domain(int32(len(tt.names))).String()
		if unspecified := tt.domain(0).String(); past != unspecified {
			t.Errorf("the domain has %s after the last of %s", past, tt.prefix)
		}
	}
}
