package scheduler

import (
	"fmt"
	"math"
	"time"

	"github.com/weirstream/weir/internal/job"
)

// strategy decides whether and when a job restarts after a failure.
//
//	exponential-delay  the delay grows with each failure; a completed checkpoint or ResetAfter without failure sets it back, and so does, when
//	                   a process or a connection is lost, a run that outlasted the delay before it. Given up after Attempts restarts
//	                   for failures of class task without a checkpoint or ResetAfter; infrastructure failures do not count
//	fixed-delay        InitialDelay each time; given up after Attempts restarts in the life of the job, whatever their cause
//	failure-rate       InitialDelay each time; given up after Attempts restarts within Window, whatever their cause
//	none               given up at once
type strategy struct {
	opts    job.RestartOptions
	random  uint64
	delay   time.Duration // exponential: before the next restart, without jitter
	waited  time.Duration // exponential: the latest delay
	resumed time.Time     // when the latest delay ended
	running time.Time     // when all tasks ran after it; zero: not yet
	counted int           // restarts that count to Attempts
	charged bool          // the latest restart counts
	recent  []time.Time   // failure rate: failures within Window, at most Attempts of them
}

func newStrategy(opts job.RestartOptions, id job.ID) strategy {
	switch opts.Strategy {
	case job.FixedDelay, job.FailureRate, job.NoRestart:
	default:
		opts.Strategy = job.ExponentialDelay
	}
	s := strategy{opts: opts, random: 14695981039346656037, delay: opts.InitialDelay}
	for _, b := range []byte(id) { // FNV-1a: jobs that fail together shall not restart together
		s.random = (s.random ^ uint64(b)) * 1099511628211
	}
	return s
}

// failed takes the failure that begins a restart: the delay before it, or false to give up.
func (s *strategy) failed(now time.Time, class job.FailureClass) (time.Duration, bool) {
	switch s.opts.Strategy {
	case job.NoRestart:
		return 0, false
	case job.FixedDelay:
		s.counted++
		return s.opts.InitialDelay, s.counted <= s.opts.Attempts
	case job.FailureRate:
		for len(s.recent) > 0 && now.Sub(s.recent[0]) >= s.opts.Window {
			s.recent = s.recent[1:]
		}
		if len(s.recent) >= s.opts.Attempts {
			return 0, false
		}
		s.recent = append(s.recent, now)
		return s.opts.InitialDelay, true
	default:
		return s.exponential(now, class)
	}
}

func (s *strategy) exponential(now time.Time, class job.FailureClass) (time.Duration, bool) {
	if !s.resumed.IsZero() && now.Sub(s.resumed) >= s.opts.ResetAfter {
		s.progressed()
	}
	if class == job.FailureInfrastructure && !s.running.IsZero() && now.Sub(s.running) >= s.waited {
		s.delay = s.opts.InitialDelay
	}
	s.charged = false
	if !s.merged(class) {
		return 0, false
	}
	jitter := 1 + max(s.opts.Jitter, 0)*(2*s.draw()-1)
	delay := scale(s.delay, jitter, s.opts.MaxDelay)
	s.delay = scale(s.delay, max(s.opts.Multiplier, 1), s.opts.MaxDelay)
	s.waited, s.resumed, s.running = delay, now.Add(delay), time.Time{}
	return delay, true
}

// runs notes that all tasks run.
func (s *strategy) runs(now time.Time) { s.running = now }

// merged takes a failure that belongs to the restart that has begun, and reports whether the job may go on with it.
func (s *strategy) merged(class job.FailureClass) bool {
	if s.opts.Strategy != job.ExponentialDelay || class != job.FailureTask || s.charged {
		return true
	}
	s.charged = true
	s.counted++
	return s.counted <= s.opts.Attempts
}

// progressed notes that the job got further than before.
func (s *strategy) progressed() {
	if s.opts.Strategy == job.ExponentialDelay {
		s.counted, s.delay = 0, s.opts.InitialDelay
	}
}

// giveUp makes the failure that ends the job out of the one that was not tolerated.
func (s *strategy) giveUp(f job.Failure) job.Failure {
	var why string
	switch s.opts.Strategy {
	case job.NoRestart:
		why = "the restart strategy is none"
	case job.ExponentialDelay:
		why = fmt.Sprintf("gave up after %s without a completed checkpoint", plural(s.opts.Attempts, "restart"))
	case job.FixedDelay:
		why = fmt.Sprintf("gave up after %s", plural(s.opts.Attempts, "restart"))
	case job.FailureRate:
		why = fmt.Sprintf("gave up after %s within %s", plural(s.opts.Attempts, "restart"), s.opts.Window)
	}
	return job.Failure{Class: f.Class, Message: why + ": " + f.String()}
}

// stir mixes a number from outside into the jitter.
func (s *strategy) stir(random float64) { s.random ^= math.Float64bits(random) }

// draw returns the next number of a splitmix64 sequence, in [0,1).
func (s *strategy) draw() float64 {
	s.random += 0x9e3779b97f4a7c15
	z := s.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// scale multiplies a delay without overflow.
func scale(d time.Duration, by float64, limit time.Duration) time.Duration {
	return time.Duration(min(float64(d)*by, float64(limit)))
}
