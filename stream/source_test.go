package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// lines reads its splits, which are its records, and says where it is.
type lines struct {
	env  SourceEnv
	fail error
}

func (l *lines) Splits(_ context.Context, n int) ([][]byte, error) {
	return [][]byte{[]byte(fmt.Sprint("for ", n))}, l.fail
}

func (l *lines) Open(env SourceEnv) (Reader[string], error) {
	l.env = env
	if l.fail != nil {
		return nil, l.fail
	}
	return &lineReader{l, slices.Clone(env.Splits)}, nil
}

type lineReader struct {
	*lines
	left [][]byte
}

func (r *lineReader) Read(out Collector[string], limit int) (Next, error) {
	for range limit {
		if len(r.left) == 0 {
			return End, nil
		}
		if err := out.Collect(NoTimestamp, string(r.left[0])); err != nil {
			return More, err
		}
		r.left = r.left[1:]
	}
	return More, nil
}

func (r *lineReader) Positions() ([][]byte, error) { return r.left, r.fail }
func (r *lineReader) Close() error                 { return r.fail }

func sourceOf(t *testing.T, src *lines, out *collecting[string], env *Env) *sourceOperator[string] {
	t.Helper()
	j := NewJob("test", nil)
	From(j, "src", Source[string](src))
	link := must(j.Nodes()[0].Build(env, []any{Collector[string](out)}))(t)
	if link.In != nil || link.Source == nil {
		t.Fatalf("the source is built as %+v", link)
	}
	return link.Operator.(*sourceOperator[string])
}

func TestSource_ReadsItsSplitsAndGoesOnWhereItWas(t *testing.T) {
	src, out, env := &lines{}, &collecting[string]{}, testEnv("src")
	env.Splits = [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	op := sourceOf(t, src, out, env)
	ok(t, op.Open())
	if next, err := op.Poll(2); next.Ended() || err != nil {
		t.Fatalf("got %v, %v", next, err)
	}
	items := must(op.SnapshotItems(1))(t).Items

	restored := testEnv("src")
	restored.Restored = true
	again := sourceOf(t, src, out, restored)
	ok(t, again.RestoreItems(items))
	ok(t, again.Open())
	if !src.env.Restored || len(src.env.Splits) != 1 {
		t.Errorf("opened with %+v", src.env)
	}
	if next, err := again.Poll(10); !next.Ended() || err != nil {
		t.Fatalf("got %v, %v", next, err)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(out.values(), want) {
		t.Errorf("got %v, want %v", out.values(), want)
	}
	ok(t, again.Close())
}

func TestSource_FailuresNameTheOperator(t *testing.T) {
	src := &lines{fail: errors.New("broken")}
	op := sourceOf(t, src, &collecting[string]{}, testEnv("src"))
	if err := op.Open(); err == nil || err.Error() != "operator src: broken" {
		t.Errorf("Open: %v", err)
	}
	ok(t, op.Close()) // it was never opened
	src.fail = nil
	ok(t, op.Open())
	src.fail = errors.New("broken")
	if _, err := op.SnapshotItems(1); err == nil || err.Error() != "operator src: broken" {
		t.Errorf("SnapshotItems: %v", err)
	}
	if err := op.Close(); err == nil || err.Error() != "operator src: broken" {
		t.Errorf("Close: %v", err)
	}
}

func TestSource_ErrorsFromDownTheChainKeepTheirOrigin(t *testing.T) {
	env := testEnv("src")
	env.Splits = [][]byte{[]byte("a")}
	below := &OperatorError{Operator: "below", Err: errors.New("broken")}
	op := sourceOf(t, &lines{}, &collecting[string]{fail: below}, env)
	ok(t, op.Open())
	if _, err := op.Poll(1); err != below {
		t.Errorf("got %v", err)
	}
}

func TestNext_SaysWhatTheReaderWants(t *testing.T) {
	at := time.Unix(7, 0)
	for _, c := range []struct {
		next         Next
		ended, waits bool
		until        time.Time
	}{{More, false, false, time.Time{}}, {End, true, false, time.Time{}}, {WaitForWake, false, true, time.Time{}}, {WaitUntil(at), false, true, at}} {
		if waits, until := c.next.Waiting(); c.next.Ended() != c.ended || waits != c.waits || !until.Equal(c.until) {
			t.Errorf("%+v: ended %v, waits %v until %v", c.next, c.next.Ended(), waits, until)
		}
	}
}
