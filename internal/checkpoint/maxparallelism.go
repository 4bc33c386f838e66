package checkpoint

import "github.com/weirstream/weir/internal/job"

// MaxParallelism is the number of key groups of the keyed state in the checkpoint, which a job that does not choose one takes over: its state
// cannot move between numbers of key groups. 0: there is no keyed state, or its operators differ; then each is held against the job's own number by
// Assign, which names the operator that does not fit.
func (md *Metadata) MaxParallelism() int {
	n := 0
	for _, v := range md.Vertices {
		keyed := false
		for _, s := range v.Subtasks {
			for _, op := range s.Operators {
				keyed = keyed || op.Keyed != nil
			}
		}
		switch {
		case !keyed:
		case n != 0 && n != v.MaxParallelism:
			return 0
		default:
			n = v.MaxParallelism
		}
	}
	return n
}

// Adopt is options with the checkpoint's number of key groups, unless they choose one.
func (md *Metadata) Adopt(o job.Options) job.Options {
	if o.MaxParallelism == 0 {
		o.MaxParallelism = md.MaxParallelism()
	}
	return o
}
