package job

import (
	"math"
	"testing"
)

func TestKeyGroups_EveryGroupHasExactlyItsOwner(t *testing.T) {
	for _, maxP := range []int{1, 2, 7, 128, 1000, 32768} {
		for _, p := range []int{1, 2, 3, 4, 5, 7, 64, 127, 128} {
			if p > maxP {
				continue
			}
			next := 0
			for i := range p {
				r := KeyGroups(i, p, maxP)
				if r.Start != next {
					t.Fatalf("max %d p %d: subtask %d starts at %d, want %d", maxP, p, i, r.Start, next)
				}
				for g := r.Start; g < r.End; g++ {
					if got := KeyGroupOwner(g, p, maxP); got != i {
						t.Fatalf("max %d p %d: owner of %d is %d, range says %d", maxP, p, g, got, i)
					}
				}
				next = r.End
			}
			if next != maxP {
				t.Fatalf("max %d p %d: ranges end at %d", maxP, p, next)
			}
		}
	}
}

func TestKeyGroupRange_Intersect(t *testing.T) {
	for _, c := range []struct{ a, b, want KeyGroupRange }{
		{KeyGroupRange{0, 10}, KeyGroupRange{5, 15}, KeyGroupRange{5, 10}},
		{KeyGroupRange{0, 10}, KeyGroupRange{2, 4}, KeyGroupRange{2, 4}},
		{KeyGroupRange{0, 5}, KeyGroupRange{8, 9}, KeyGroupRange{8, 8}},
	} {
		if got := c.a.Intersect(c.b); got != c.want {
			t.Errorf("%v intersect %v = %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestKeyGroupOf_IsTheRemainderOfTheWholeHash(t *testing.T) {
	for _, c := range []struct {
		hash uint64
		max  int
		want int
	}{{0, 128, 0}, {127, 128, 127}, {128, 128, 0}, {1<<64 - 1, 128, 127}, {1<<64 - 1, 1000, 615}, {1 << 63, 7, 1}} {
		if got := KeyGroupOf(c.hash, c.max); got != c.want {
			t.Errorf("group of %d with max %d is %d, want %d", c.hash, c.max, got, c.want)
		}
	}
}

func TestHashInGroupOf_KeepsTheGroupAndTheSpread(t *testing.T) {
	for _, maxP := range []int{1, 2, 7, 128, 1000, 32768} {
		seen := map[uint64]bool{}
		for _, of := range []uint64{0, 1, 12345, 1 << 40, math.MaxUint64, math.MaxUint64 - 7} {
			for i := range uint64(1000) {
				hash := i * 0x9E3779B97F4A7C15
				if i%4 == 0 {
					hash = math.MaxUint64 - i
				}
				got := HashInGroupOf(of, hash, maxP)
				if KeyGroupOf(got, maxP) != KeyGroupOf(of, maxP) {
					t.Fatalf("max %d: %d in the group of %d gives %d", maxP, hash, of, got)
				}
				if distance := max(got, hash) - min(got, hash); distance >= 2*uint64(maxP) {
					t.Fatalf("max %d: %d became %d, far away", maxP, hash, got)
				}
				seen[got] = true
			}
		}
		if len(seen) < 500 {
			t.Errorf("max %d: %d hashes are left", maxP, len(seen))
		}
	}
}
