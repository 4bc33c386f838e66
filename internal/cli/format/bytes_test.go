package format

import "testing"

func TestByteSize_ReadsWhatItWrites(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "3KiB": 3 << 10, "512MiB": 512 << 20, "2 GiB": 2 << 30, "2048KiB": 2 << 20} {
		var got, again ByteSize
		if err := got.Set(text); err != nil || int64(got) != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
		if err := again.Set(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which is %d, %v", text, got.String(), again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1 MB", "99999999999GiB", "1TiB"} {
		if err := new(ByteSize).Set(text); err == nil {
			t.Errorf("%q is a size", text)
		}
	}
}
