package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

// metadataHeader is the length of what precedes the message in a _metadata file.
const metadataHeader = 16

// Package checkpoint writes and reads the message CheckpointMetadata by hand. These tests hold it against the generated code.

func TestMetadata_WrittenByHand_IsTheMessage(t *testing.T) {
	for seed := range uint64(300) {
		md := randomMetadata(rand.New(rand.NewPCG(seed, 3)))
		file, err := checkpoint.EncodeMetadata(md)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := &pb.CheckpointMetadata{}
		if err := proto.Unmarshal(file[metadataHeader:], got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Fatalf("seed %d: there are fields that the message does not have", seed)
		}
		if want := metadataMessage(md); !proto.Equal(want, got) {
			t.Fatalf("seed %d: want %v\ngot %v", seed, want, got)
		}
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(got)
		if err != nil || !bytes.Equal(body, file[metadataHeader:]) {
			t.Fatalf("seed %d: generated code writes other bytes (error %v)", seed, err)
		}
	}
}

func TestMetadata_WrittenByGeneratedCode_IsReadByHand(t *testing.T) {
	for seed := range uint64(300) {
		want := randomMetadata(rand.New(rand.NewPCG(seed, 4)))
		body, err := proto.Marshal(metadataMessage(want))
		if err != nil {
			t.Fatal(err)
		}
		file := binary.BigEndian.AppendUint32([]byte("WEIR"), checkpoint.MetadataVersion)
		file = binary.BigEndian.AppendUint32(file, uint32(len(body)))
		file = binary.BigEndian.AppendUint32(file, checkpoint.Checksum(body))
		got, err := checkpoint.DecodeMetadata(append(file, body...))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func metadataMessage(md *checkpoint.Metadata) *pb.CheckpointMetadata {
	return &pb.CheckpointMetadata{
		JobId: string(md.Job), JobName: md.JobName, Params: md.Params, CheckpointId: int64(md.ID), Kind: pb.CheckpointKind(md.Kind),
		TimestampMs: encodeTime(md.Timestamp), Fingerprint: md.Fingerprint, LeaderEpoch: uint64(md.Epoch),
		Vertices: each(md.Vertices, func(v checkpoint.VertexState) *pb.VertexState {
			return &pb.VertexState{
				VertexId: string(v.Vertex), Parallelism: int32(v.Parallelism), MaxParallelism: int32(v.MaxParallelism),
				Operators: each(v.Operators, encodeOperator), Subtasks: each(v.Subtasks, encodeSubtaskState),
			}
		}),
		MasterStates: each(md.MasterStates, func(s checkpoint.MasterState) *pb.MasterState {
			return &pb.MasterState{HookId: s.Hook, State: s.State}
		}),
	}
}

// randomMetadata makes metadata that is valid: state is that of operators which the vertex has.
func randomMetadata(r *rand.Rand) *checkpoint.Metadata {
	md := randomValue[checkpoint.Metadata](r)
	for i := range md.MasterStates { // ascending, and never without a state
		md.MasterStates[i].Hook = fmt.Sprintf("hook-%04d", i)
		md.MasterStates[i].State = append([]byte{}, md.MasterStates[i].State...)
	}
	for i := range md.Vertices {
		v := &md.Vertices[i]
		v.MaxParallelism = job.MaxMaxParallelism
		v.Parallelism = len(v.Subtasks) + 1
		for n := range v.Subtasks {
			v.Subtasks[n].Subtask = n
			states := v.Subtasks[n].Operators
			v.Subtasks[n].Operators = nil
			for k := range min(len(states), len(v.Operators)) {
				states[k].Operator = v.Operators[k].ID
				v.Subtasks[n].Operators = append(v.Subtasks[n].Operators, states[k])
			}
		}
	}
	return &md
}
