package rescale

import (
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

// Known is what an estimate is made of.
type Known struct {
	Old, New *job.Graph
	Latest   *checkpoint.Metadata // nil: there is none
	// Before is where the tasks run, After where those of New would, as far as the slots are known.
	Before, After map[job.TaskID]job.ExecutorID
	Held, Free    int // slots
	Measured      Measured
}

// Measured is what earlier checkpoints and starts have taken.
type Measured struct {
	Checkpoint      time.Duration // 0: none
	CheckpointBytes int64
	Starts          Starts
}

// Starts are the measured starts of all tasks, from their deployment until the last one was RUNNING.
type Starts struct {
	Fastest time.Duration // 0: none
	// Rate is how many bytes of state per second the task with the most of it read, in the latest start that read any; 0: none.
	Rate float64
}

// Add takes a start into account; read is the state of the task that had most of it.
func (s *Starts) Add(took time.Duration, read int64) {
	if took <= 0 {
		return
	}
	if s.Fastest == 0 || took < s.Fastest {
		s.Fastest = took
	}
	if read > 0 {
		s.Rate = float64(read) / max(took-s.Fastest, took/10).Seconds()
	}
}

// Estimate says what a rescale would take. The error says why the state does not fit the new graph.
//
// The pause is that of the fastest start so far, which is about what a start costs without state, and the time in which the task with the most state
// reads it: at the rate of the latest start that read state, else at that at which the latest checkpoint was written.
func Estimate(k Known) (gateway.RescaleEstimate, error) {
	e := gateway.RescaleEstimate{
		Vertices: vertices(k.Old, k.New), SlotsNeeded: k.New.MaxVertexParallelism(), SlotsHeld: k.Held, SlotsFree: k.Free,
		CheckpointDuration: k.Measured.Checkpoint,
	}
	var most int64
	if k.Latest != nil {
		moves, err := Moves(k.Latest, k.New)
		if err != nil {
			return e, err
		}
		e.Checkpoint, e.StateBytes = k.Latest.ID, k.Latest.StateBytes()
		e.MovedBytes, _ = Divide(moves, k.Before, k.After)
		tasks, read, moved := reads(moves, func(m Move) bool { return m.away(k.Before, k.After) })
		for _, t := range tasks {
			e.Tasks = append(e.Tasks, gateway.TaskRead{Task: t, Bytes: read[t], Moved: moved[t]})
			most = max(most, read[t])
		}
	}
	e.Pause = k.Measured.pause(most)
	return e, nil
}

func (m Measured) pause(most int64) time.Duration {
	if m.Starts.Fastest == 0 {
		return 0
	}
	rate := m.Starts.Rate
	if rate == 0 && m.Checkpoint > 0 {
		rate = float64(m.CheckpointBytes) / m.Checkpoint.Seconds()
	}
	if rate <= 0 {
		return m.Starts.Fastest
	}
	return m.Starts.Fastest + time.Duration(float64(most)/rate*float64(time.Second))
}

// vertices lists those of the new graph, then those that are no more.
func vertices(old, next *job.Graph) []gateway.VertexRescale {
	var out []gateway.VertexRescale
	for _, v := range next.Vertices {
		r := gateway.VertexRescale{Vertex: v.ID, To: v.Parallelism}
		if was := old.Vertex(v.ID); was != nil {
			r.From = was.Parallelism
		}
		out = append(out, r)
	}
	for _, v := range old.Vertices {
		if next.Vertex(v.ID) == nil {
			out = append(out, gateway.VertexRescale{Vertex: v.ID, From: v.Parallelism})
		}
	}
	return out
}
