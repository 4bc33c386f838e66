package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ByteSize is the value of a flag: a number of bytes, with or without a unit.
type ByteSize int64

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// Type implements pflag.Value.
func (*ByteSize) Type() string { return "SIZE" }

// String implements pflag.Value.
func (b *ByteSize) String() string {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; *b != 0 && int64(*b)%u.bytes == 0 {
			return fmt.Sprint(int64(*b)/u.bytes, u.suffix)
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Set implements pflag.Value.
func (b *ByteSize) Set(text string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*b = ByteSize(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size: write it as 512MiB, 4GiB, or a number of bytes", text)
}
