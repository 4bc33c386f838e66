package timer

import (
	"math"
	"testing"

	"github.com/weirstream/weir/stream/codec"
)

func TestCodec_ReadsWhatItWrites(t *testing.T) {
	keys, err := codec.For[string]()
	if err != nil {
		t.Fatal(err)
	}
	c := Codec[string]{keys}
	for _, v := range []Timer[string]{{"a", 1}, {"", math.MinInt64}, {"long", math.MaxInt64}, {"b", -1}} {
		data, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		got, rest, err := c.Decode(append(data, "rest"...))
		if err != nil || got != v || string(rest) != "rest" {
			t.Errorf("%+v became %+v, %q, %v", v, got, rest, err)
		}
		for i := range data {
			if _, _, err := c.Decode(data[:i]); err == nil {
				t.Errorf("the first %d of the %d bytes of %+v were accepted", i, len(data), v)
			}
		}
	}
}
