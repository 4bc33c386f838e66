package gateway

import (
	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/job"
)

// Deployments makes what each executor is to start: with the state of the checkpoint, or without one fresh, with the splits spread round robin.
func Deployments(g *job.Graph, placements []job.Placement, from *checkpoint.Completed) (map[job.ExecutorID][]TaskDeployment, error) {
	var state map[job.TaskID]checkpoint.Restore
	if from != nil {
		var err error
		if state, err = checkpoint.Assign(from.Metadata, g); err != nil {
			return nil, err
		}
	}
	out := map[job.ExecutorID][]TaskDeployment{}
	for _, p := range placements {
		d := TaskDeployment{Attempt: p.Attempt}
		if from != nil {
			d.Restore = &TaskRestore{Checkpoint: from.Metadata.ID, Dir: from.Dir, State: state[p.Attempt.Task], Stopped: from.Stopped}
		} else {
			v := g.Vertex(p.Attempt.Task.Vertex)
			for split := p.Attempt.Task.Subtask; split < len(v.Splits); split += v.Parallelism {
				d.Splits = append(d.Splits, split)
			}
		}
		out[p.Executor] = append(out[p.Executor], d)
	}
	return out, nil
}
