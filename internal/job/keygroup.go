package job

import (
	"fmt"
	"math/bits"
)

// DefaultMaxParallelism is the number of key groups of a job that does not choose it.
const DefaultMaxParallelism = 128

// MaxMaxParallelism bounds the number of key groups.
const MaxMaxParallelism = 32768

// KeyGroupRange is a half-open range of key groups.
type KeyGroupRange struct{ Start, End int }

// String is "[start,end)".
func (r KeyGroupRange) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }

// Len is the number of key groups in the range.
func (r KeyGroupRange) Len() int { return r.End - r.Start }

// Contains reports whether group is in the range.
func (r KeyGroupRange) Contains(group int) bool { return group >= r.Start && group < r.End }

// Intersect returns the key groups in both ranges, an empty range if there are none.
func (r KeyGroupRange) Intersect(o KeyGroupRange) KeyGroupRange {
	start := max(r.Start, o.Start)
	return KeyGroupRange{start, max(start, min(r.End, o.End))}
}

// KeyGroups returns the range of key groups that a subtask owns. The formula is Flink's: start = ceil(i*max/p).
func KeyGroups(subtask, parallelism, maxParallelism int) KeyGroupRange {
	return KeyGroupRange{
		(subtask*maxParallelism + parallelism - 1) / parallelism,
		((subtask+1)*maxParallelism + parallelism - 1) / parallelism,
	}
}

// KeyGroupOwner returns the subtask whose range holds group.
func KeyGroupOwner(group, parallelism, maxParallelism int) int {
	return group * parallelism / maxParallelism
}

// KeyGroupOf returns the key group of a key with the given hash. It is the only place where a key's group is computed.
func KeyGroupOf(hash uint64, maxParallelism int) int {
	n := uint64(maxParallelism)
	if n&(n-1) == 0 {
		return int(hash & (n - 1)) // the same, without a division
	}
	return int(hash % n)
}

// MixHashes returns a hash of two things that have hashes.
func MixHashes(a, b uint64) uint64 {
	x := bits.RotateLeft64(a, 32)*0x9E3779B97F4A7C15 + b
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9 // the finaliser of SplitMix64: each bit of x changes half of the bits
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// HashInGroupOf returns a hash that is as spread as hash and is in the key group of another one: that of an entry which belongs to a key and is found
// by more than the key.
func HashInGroupOf(of, hash uint64, maxParallelism int) uint64 {
	groups := uint64(maxParallelism)
	first := hash - hash%groups
	if out := first + of%groups; out >= first {
		return out
	}
	return first - groups + of%groups // the last groups of the numbers are not complete
}
