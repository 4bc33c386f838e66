package codec

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// hexes is a codec of one's own: strings in angle brackets.
type hexes struct{}

func (hexes) Append(dst []byte, v string) ([]byte, error) { return append(dst, "<"+v+">"...), nil }
func (hexes) Schema() string                              { return "angles" }
func (hexes) Decode(src []byte) (string, []byte, error) {
	head, rest, ok := strings.Cut(string(src), ">")
	if !ok || head[0] != '<' {
		return "", src, errors.New("no angle brackets")
	}
	return head[1:], []byte(rest), nil
}

func TestDecodeAll_CodecOfOnesOwn_IsCalledPerValue(t *testing.T) {
	got, rest, err := DecodeAll[string](hexes{}, []byte("<a><b><c>"), 2, []string{"old"})
	if err != nil || strings.Join(got, " ") != "old a b" || string(rest) != "<c>" {
		t.Errorf("got %q, rest %q, %v", got, rest, err)
	}
	got, rest, err = DecodeAll[string](hexes{}, []byte("<a>(b)"), 2, []string{"old"})
	if err == nil || len(got) != 1 || string(rest) != "<a>(b)" {
		t.Errorf("after an error: got %q, rest %q, %v", got, rest, err)
	}
}

func TestDecodeAll_ReusedRoom_HoldsNothingOld(t *testing.T) {
	type record struct {
		A    *int64
		Left string `weir:"-"`
	}
	c := mustFor[record](t)
	one := int64(1)
	room := []record{{&one, "old"}, {&one, "old"}}
	got, _, err := DecodeAll(c, []byte{0, 0}, 2, room[:0])
	if err != nil || &got[0] != &room[0] || got[0] != (record{}) || got[1] != (record{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecodeAll_WrongCount_IsRefusedBeforeRoomIsMade(t *testing.T) {
	c := mustFor[Six](t)
	src := mustAppend(t, c, Six{})
	for _, n := range []int{-1, 2, math.MaxInt} {
		if got, rest, err := DecodeAll(c, src, n, nil); err == nil || cap(got) != 0 || len(rest) != len(src) {
			t.Errorf("%d values in %d bytes: %d values, %v", n, len(src), len(got), err)
		}
	}
	if _, _, err := DecodeAll[string](hexes{}, nil, maxEmptyElements+1, nil); err == nil {
		t.Error("any number of values may be in no bytes")
	}
	got, _, err := DecodeAll(c, append(src, 0xff), 1, nil)
	if err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
