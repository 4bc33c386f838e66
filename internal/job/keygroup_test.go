package job

import "testing"

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
