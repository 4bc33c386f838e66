package sim

import (
	"os"
	"strconv"
	"testing"
)

func TestDbg(t *testing.T) {
	n, _ := strconv.ParseUint(os.Getenv("S"), 10, 64)
	r := Run(RandomConfig(n))
	for _, l := range r.Log {
		t.Log(l)
	}
	t.Log(r.Violation, r.Steps)
}
