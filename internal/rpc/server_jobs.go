package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
	"github.com/weirstream/weir/internal/rpc/pb"
)

type jobsServer struct {
	pb.UnimplementedJobServiceServer
	jobs gateway.Jobs
}

func (s *jobsServer) SubmitJob(ctx context.Context, p *pb.SubmitJobRequest) (*pb.SubmitJobResponse, error) {
	r, err := decodeSubmission(p)
	if err != nil {
		return nil, badRequest(err)
	}
	id, err := s.jobs.Submit(ctx, r)
	return &pb.SubmitJobResponse{JobId: string(id)}, err
}

func (s *jobsServer) ListJobs(ctx context.Context, _ *pb.ListJobsRequest) (*pb.ListJobsResponse, error) {
	list, err := s.jobs.List(ctx)
	return &pb.ListJobsResponse{Jobs: each(list, encodeJobStatus)}, err
}

func (s *jobsServer) GetJob(ctx context.Context, p *pb.GetJobRequest) (*pb.GetJobResponse, error) {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return nil, badRequest(err)
	}
	st, err := s.jobs.Get(ctx, id)
	return &pb.GetJobResponse{Job: encodeJobStatus(st)}, err
}

func (s *jobsServer) WatchJob(p *pb.WatchJobRequest, stream grpc.ServerStreamingServer[pb.WatchJobResponse]) error {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return badRequest(err)
	}
	return s.jobs.Watch(stream.Context(), id, func(st gateway.JobStatus, events []gateway.JobEvent) error {
		return stream.Send(&pb.WatchJobResponse{Job: encodeJobStatus(st), Events: each(events, encodeJobEvent)})
	})
}

func (s *jobsServer) CancelJob(ctx context.Context, p *pb.CancelJobRequest) (*pb.CancelJobResponse, error) {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return nil, badRequest(err)
	}
	state, err := s.jobs.Cancel(ctx, id)
	return &pb.CancelJobResponse{State: encodeEnum[pb.JobState](state)}, err
}

func (s *jobsServer) StopJob(ctx context.Context, p *pb.StopJobRequest) (*pb.StopJobResponse, error) {
	request, err := decodeStopJob(p)
	if err != nil {
		return nil, badRequest(err)
	}
	r, err := s.jobs.Stop(ctx, request)
	return &pb.StopJobResponse{
		State: encodeEnum[pb.JobState](r.State), CheckpointId: int64(r.Savepoint.ID), Path: r.Savepoint.Path,
		DurationUs: encodeDuration(r.Savepoint.Duration, time.Microsecond),
	}, err
}

func (s *jobsServer) RescaleJob(ctx context.Context, p *pb.RescaleJobRequest) (*pb.RescaleJobResponse, error) {
	request, err := decodeRescaleJob(p)
	if err != nil {
		return nil, badRequest(err)
	}
	r, err := s.jobs.Rescale(ctx, request)
	return encodeRescaleResult(r), err
}

func (s *jobsServer) TriggerCheckpoint(ctx context.Context, p *pb.TriggerJobCheckpointRequest) (*pb.TriggerJobCheckpointResponse, error) {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return nil, badRequest(err)
	}
	r, err := s.jobs.TriggerCheckpoint(ctx, id, job.LeaderEpoch(p.GetLeaderEpoch()))
	return &pb.TriggerJobCheckpointResponse{
		CheckpointId: int64(r.ID), Path: r.Path, DurationUs: encodeDuration(r.Duration, time.Microsecond),
	}, err
}

func (s *jobsServer) TriggerSavepoint(ctx context.Context, p *pb.TriggerSavepointRequest) (*pb.TriggerSavepointResponse, error) {
	request, err := decodeTriggerSavepoint(p)
	if err != nil {
		return nil, badRequest(err)
	}
	r, err := s.jobs.TriggerSavepoint(ctx, request)
	return &pb.TriggerSavepointResponse{
		CheckpointId: int64(r.ID), Path: r.Path, DurationUs: encodeDuration(r.Duration, time.Microsecond),
	}, err
}

func (s *jobsServer) DisposeSavepoint(ctx context.Context, p *pb.DisposeSavepointRequest) (*pb.DisposeSavepointResponse, error) {
	if p.GetPath() == "" {
		return nil, badRequest(errors.New("no path"))
	}
	return &pb.DisposeSavepointResponse{}, s.jobs.DisposeSavepoint(ctx, p.GetPath())
}

func (s *jobsServer) ListCheckpoints(ctx context.Context, p *pb.ListCheckpointsRequest) (*pb.ListCheckpointsResponse, error) {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return nil, badRequest(err)
	}
	h, err := s.jobs.Checkpoints(ctx, id)
	return encodeHistory(h), err
}

func (s *jobsServer) GetCheckpoint(ctx context.Context, p *pb.GetCheckpointRequest) (*pb.GetCheckpointResponse, error) {
	id, err := decodeJobID(p.GetJobId())
	if err != nil {
		return nil, badRequest(err)
	}
	n, err := decodeCheckpointID(p.GetCheckpointId())
	if err != nil {
		return nil, badRequest(err)
	}
	d, err := s.jobs.Checkpoint(ctx, id, n)
	return encodeDetail(d), err
}

func (s *jobsServer) ListTaskExecutors(ctx context.Context, _ *pb.ListTaskExecutorsRequest) (*pb.ListTaskExecutorsResponse, error) {
	list, err := s.jobs.TaskExecutors(ctx)
	return &pb.ListTaskExecutorsResponse{Executors: each(list, encodeExecutorStatus)}, err
}
