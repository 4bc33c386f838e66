package codec

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

type inner struct {
	Name  string
	Count int
}

type nestedText struct {
	ID    int64
	Inner inner
	Pair  [2]inner
}

func owned[T any](t *testing.T) func(v, before T) T {
	t.Helper()
	c, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return Owned(c)
}

func shares(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }

func TestOwned_IsNilWithoutStrings(t *testing.T) {
	if owned[int](t) != nil || owned[[]byte](t) != nil || owned[struct{ A []float64 }](t) != nil || owned[map[int]time.Time](t) != nil {
		t.Error("there is something to do for a type without strings")
	}
	if Owned[point](pointCodec{}) != nil {
		t.Error("there is something to do for a type without strings that has a codec of its own")
	}
}

func TestOwned_ClonesStringsInPlace(t *testing.T) {
	text := strings.Clone("some text of a batch")
	own := owned[nestedText](t)
	v := nestedText{1, inner{text[:4], 2}, [2]inner{{text[5:9], 3}, {"", 4}}}
	got := own(v, nestedText{})
	if got != v {
		t.Fatalf("got %+v, want %+v", got, v)
	}
	if shares(got.Inner.Name, v.Inner.Name) || shares(got.Pair[0].Name, v.Pair[0].Name) {
		t.Error("strings are still parts of the text")
	}
	again := own(got, got)
	if !shares(again.Inner.Name, got.Inner.Name) {
		t.Error("a string that was owned already was cloned")
	}
	shorter := got
	shorter.Inner.Name = got.Inner.Name[:2]
	if again := own(shorter, got); !shares(again.Inner.Name, got.Inner.Name) {
		t.Error("a part of an owned string was cloned")
	}
	prefix := nestedText{Inner: inner{Name: text[:2]}}
	if again := own(v, prefix); shares(again.Inner.Name, text) {
		t.Error("a longer string that begins like the old one was not cloned")
	}
}

func TestOwned_CopiesWhatIsBehindPointers(t *testing.T) {
	type deep struct {
		At   time.Time
		List []*inner
		By   map[string]string
	}
	text := strings.Clone("some text of a batch")
	own := owned[deep](t)
	v := deep{time.Unix(5, 7).UTC(), []*inner{{text[:4], 1}, nil}, map[string]string{text[5:9]: text[10:]}}
	got := own(v, deep{})
	if !reflect.DeepEqual(got, v) {
		t.Fatalf("got %+v, want %+v", got, v)
	}
	if shares(got.List[0].Name, text) {
		t.Error("a string in a slice is still part of the text")
	}
	if again := own(got, got); again.List[0] != got.List[0] {
		t.Error("a value that did not change was copied")
	}
}

func TestOwned_LosesNoFieldThatIsNotEncoded(t *testing.T) {
	type partial struct {
		Name  string
		Cache string `weir:"-"`
	}
	if got := owned[partial](t)(partial{"a", "b"}, partial{}); got != (partial{"a", "b"}) {
		t.Errorf("got %+v", got)
	}
	if owned[[]partial](t) != nil {
		t.Error("a list of values with fields that are not encoded cannot be copied")
	}
}

func TestOwned_ManyStringsAreCopied(t *testing.T) {
	var v [maxTexts + 1]string
	text := strings.Clone("text")
	v[maxTexts] = text
	if got := owned[[maxTexts + 1]string](t)(v, [maxTexts + 1]string{}); got != v || shares(got[maxTexts], text) {
		t.Error("the last string is not right")
	}
}

type point struct{ X, Y int }

type pointCodec struct{}

func (pointCodec) Append(dst []byte, p point) ([]byte, error) {
	return append(dst, byte(p.X), byte(p.Y)), nil
}
func (pointCodec) Decode(src []byte) (point, []byte, error) {
	return point{int(src[0]), int(src[1])}, src[2:], nil
}
func (pointCodec) Schema() string { return "point" }

// ownText is a user's codec of strings, which fails for one.
type ownText struct{}

func (ownText) Append(dst []byte, s string) ([]byte, error) {
	if s == "bad" {
		return dst, errors.New("bad")
	}
	return append(append(dst, byte(len(s))), s...), nil
}
func (ownText) Decode(src []byte) (string, []byte, error) {
	n := int(src[0])
	return string(src[1 : 1+n]), src[1+n:], nil
}
func (ownText) Schema() string { return "own" }

func TestOwned_UsesAUsersCodec(t *testing.T) {
	own := Owned[string](ownText{})
	text := strings.Clone("text")
	if got := own(text, ""); got != text || shares(got, text) {
		t.Errorf("got %q", got)
	}
	if got := own("bad", ""); got != "bad" {
		t.Errorf("a value that cannot be encoded became %q", got)
	}
}
