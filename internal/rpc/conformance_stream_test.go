package rpc

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirstream/weir/internal/gateway"
	"github.com/weirstream/weir/internal/job"
)

type seen struct {
	Status gateway.JobStatus
	Events []gateway.JobEvent
}

func TestConformance_Watch_SeesEveryStatusInOrder(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		want := randomValue[[10]seen](rand.New(rand.NewPCG(1, 10)))
		s.fake.watch = func(_ context.Context, id job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
			if id != "the job" {
				t.Errorf("watched job %q", id)
			}
			for _, w := range want {
				if err := f(w.Status, w.Events); err != nil {
					return err
				}
			}
			return nil
		}
		var got []seen
		err := s.jobs.Watch(t.Context(), "the job", func(st gateway.JobStatus, events []gateway.JobEvent) error {
			got = append(got, seen{st, events})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want[:], got, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestConformance_Watch_EndsWithTheErrorOfEitherSide(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, want := range sentErrors() {
			s.fake.watch = func(_ context.Context, _ job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
				if err := f(gateway.JobStatus{}, nil); err != nil {
					return err
				}
				return want
			}
			got := s.jobs.Watch(t.Context(), "j", func(gateway.JobStatus, []gateway.JobEvent) error { return nil })
			checkError(t, "watch", got, want)
		}
		enough, ended := errors.New("enough"), make(chan struct{})
		s.fake.watch = func(ctx context.Context, _ job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
			defer close(ended)
			for {
				if err := f(gateway.JobStatus{Detail: "again"}, nil); err != nil {
					return err
				}
			}
		}
		n := 0
		got := s.jobs.Watch(t.Context(), "j", func(gateway.JobStatus, []gateway.JobEvent) error {
			if n++; n == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(got, enough) || n != 3 {
			t.Errorf("after %d calls: %v, want %v after 3", n, got, enough)
		}
		<-ended
	})
}

func TestConformance_Watch_EndsWithItsContext(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		s.fake.watch = func(ctx context.Context, _ job.ID, f func(gateway.JobStatus, []gateway.JobEvent) error) error {
			defer close(ended)
			if err := f(gateway.JobStatus{}, nil); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		}
		err := s.jobs.Watch(ctx, "j", func(gateway.JobStatus, []gateway.JobEvent) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		<-ended
	})
}

func TestConformance_Registration_LivesUntilEitherSideEndsIt(t *testing.T) {
	onEachTransport(t, func(t *testing.T, s sides) {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 11))
			registration, welcome := randomValue[gateway.Registration](r), randomValue[gateway.Registered](r)
			ended := make(chan struct{})
			s.fake.reg = func(ctx context.Context, got gateway.Registration, registered func(gateway.Registered)) error {
				defer close(ended)
				if diff := cmp.Diff(registration, got, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				registered(welcome)
				<-ctx.Done()
				return ctx.Err()
			}
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := s.jobMaster.RegisterTaskExecutor(ctx, registration, func(got gateway.Registered) {
				calls++
				if got != welcome {
					t.Errorf("registered with %+v, want %+v", got, welcome)
				}
				cancel()
			})
			if !errors.Is(err, context.Canceled) || calls != 1 {
				t.Errorf("after %d calls of registered: %v", calls, err)
			}
			<-ended
		}
	})
}

func TestConformance_Registration_EndsWithTheErrorOfTheJobMaster(t *testing.T) {
	replaced := &gateway.Error{Code: gateway.FailedPrecondition, Reason: gateway.ReasonReplaced, Message: "a newer incarnation took over"}
	onEachTransport(t, func(t *testing.T, s sides) {
		for _, before := range []bool{true, false} {
			for _, want := range append(sentErrors(), replaced) {
				s.fake.reg = func(_ context.Context, _ gateway.Registration, registered func(gateway.Registered)) error {
					if before {
						registered(gateway.Registered{Epoch: 1, HeartbeatInterval: 1e9})
					}
					return want
				}
				calls := 0
				got := s.jobMaster.RegisterTaskExecutor(t.Context(), randomValue[gateway.Registration](rand.New(rand.NewPCG(1, 12))),
					func(gateway.Registered) { calls++ })
				checkError(t, "register", got, want)
				if (calls == 1) != before {
					t.Errorf("registered was called %d times", calls)
				}
			}
		}
		s.fake.reg = func(context.Context, gateway.Registration, func(gateway.Registered)) error { return nil }
		err := s.jobMaster.RegisterTaskExecutor(t.Context(), randomValue[gateway.Registration](rand.New(rand.NewPCG(1, 12))), nil)
		if err != nil {
			t.Errorf("a registration that ends without an error gives %v", err)
		}
	})
}
