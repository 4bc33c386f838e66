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
