package rpc

import (
	"context"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// fake is behind the fakes of all three interfaces. A test sets on before it calls; on gets the request, several arguments as one of the
// structs below.
type fake struct {
	on    func(ctx context.Context, request any) (answer any, err error)
	watch func(ctx context.Context, id job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error
	reg   func(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error
}

type (
	triggerArgs struct {
		ID    job.ID
		Epoch job.LeaderEpoch
		Dir   string
	}
	checkpointArgs struct {
		ID         job.ID
		Checkpoint checkpoint.ID
	}
	none struct{}
)

func ask[A any](ctx context.Context, f *fake, request any) (A, error) {
	answer, err := f.on(ctx, request)
	a, _ := answer.(A)
	return a, err
}

type fakeExecutor struct{ *fake }

func (f fakeExecutor) PlanJob(ctx context.Context, r gateway.PlanJob) (*job.Graph, error) {
	g, err := ask[job.Graph](ctx, f.fake, r)
	return &g, err
}

func (f fakeExecutor) DeployTasks(ctx context.Context, r gateway.DeployTasks) error {
	_, err := ask[none](ctx, f.fake, r)
	return err
}

func (f fakeExecutor) CancelTasks(ctx context.Context, r gateway.CancelTasks) ([]job.AttemptID, error) {
	return ask[[]job.AttemptID](ctx, f.fake, r)
}

func (f fakeExecutor) TriggerCheckpoint(ctx context.Context, r gateway.TriggerCheckpoint) ([]job.AttemptID, error) {
	return ask[[]job.AttemptID](ctx, f.fake, r)
}

func (f fakeExecutor) NotifyCheckpointComplete(ctx context.Context, r gateway.NotifyCheckpointComplete) ([]job.AttemptID, error) {
	return ask[[]job.AttemptID](ctx, f.fake, r)
}

func (f fakeExecutor) NotifyCheckpointAborted(ctx context.Context, r gateway.NotifyCheckpointAborted) ([]job.AttemptID, error) {
	return ask[[]job.AttemptID](ctx, f.fake, r)
}

type fakeJobMaster struct{ *fake }

func (f fakeJobMaster) RegisterTaskExecutor(ctx context.Context, r gateway.Registration, registered func(gateway.Registered)) error {
	return f.reg(ctx, r, registered)
}

func (f fakeJobMaster) Heartbeat(ctx context.Context, r gateway.Heartbeat) (gateway.HeartbeatAnswer, error) {
	return ask[gateway.HeartbeatAnswer](ctx, f.fake, r)
}

func (f fakeJobMaster) UpdateTaskState(ctx context.Context, r gateway.TaskUpdate) error {
	_, err := ask[none](ctx, f.fake, r)
	return err
}

func (f fakeJobMaster) AcknowledgeCheckpoint(ctx context.Context, r gateway.Ack) (checkpoint.Verdict, error) {
	return ask[checkpoint.Verdict](ctx, f.fake, r)
}

func (f fakeJobMaster) DeclineCheckpoint(ctx context.Context, r gateway.Decline) error {
	_, err := ask[none](ctx, f.fake, r)
	return err
}

type fakeJobs struct{ *fake }

func (f fakeJobs) Submit(ctx context.Context, r gateway.Submission) (job.ID, error) {
	return ask[job.ID](ctx, f.fake, r)
}

func (f fakeJobs) List(ctx context.Context) ([]gateway.JobStatus, error) {
	return ask[[]gateway.JobStatus](ctx, f.fake, none{})
}

func (f fakeJobs) Get(ctx context.Context, id job.ID) (gateway.JobStatus, error) {
	return ask[gateway.JobStatus](ctx, f.fake, id)
}

func (f fakeJobs) Watch(ctx context.Context, id job.ID, see func(gateway.JobStatus, []gateway.JobEvent) error) error {
	return f.watch(ctx, id, see)
}

func (f fakeJobs) Cancel(ctx context.Context, id job.ID) (job.State, error) {
	return ask[job.State](ctx, f.fake, id)
}

func (f fakeJobs) Stop(ctx context.Context, r gateway.StopJob) (gateway.StopResult, error) {
	return ask[gateway.StopResult](ctx, f.fake, r)
}

func (f fakeJobs) Rescale(ctx context.Context, r gateway.RescaleJob) (gateway.RescaleResult, error) {
	return ask[gateway.RescaleResult](ctx, f.fake, r)
}

func (f fakeJobs) TriggerCheckpoint(ctx context.Context, id job.ID, epoch job.LeaderEpoch) (gateway.CheckpointResult, error) {
	return ask[gateway.CheckpointResult](ctx, f.fake, triggerArgs{ID: id, Epoch: epoch})
}

func (f fakeJobs) TriggerSavepoint(ctx context.Context, r gateway.TriggerSavepoint) (gateway.CheckpointResult, error) {
	return ask[gateway.CheckpointResult](ctx, f.fake, r)
}

func (f fakeJobs) DisposeSavepoint(ctx context.Context, path string) error {
	_, err := ask[none](ctx, f.fake, job.ID(path))
	return err
}

func (f fakeJobs) Checkpoints(ctx context.Context, id job.ID) (gateway.CheckpointHistory, error) {
	return ask[gateway.CheckpointHistory](ctx, f.fake, id)
}

func (f fakeJobs) Checkpoint(ctx context.Context, id job.ID, n checkpoint.ID) (gateway.CheckpointDetail, error) {
	return ask[gateway.CheckpointDetail](ctx, f.fake, checkpointArgs{id, n})
}

func (f fakeJobs) TaskExecutors(ctx context.Context) ([]gateway.ExecutorStatus, error) {
	return ask[[]gateway.ExecutorStatus](ctx, f.fake, none{})
}
