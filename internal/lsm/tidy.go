package lsm

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// creditPercent is how much may be rewritten by merging, in percent of what is written: the price of a snapshot that has only what changed.
	creditPercent = 150
	// wantedDepth is up to how many files lie above each other before they are merged, if there is credit; at maxDepth they are merged anyway.
	wantedDepth = 4
	maxDepth    = 24
	bottomLevel = 6
	// allGroups is the shard bits of a store with one shard.
	allGroups = 8 * groupBytes
)

// shard is the files of some neighbouring key groups.
type shard struct {
	depth int   // files above the bottom
	bytes int64 // of all its files
}

// Tidy merges the files of the shard with the deepest pile, if there is credit: then keys are found sooner and deleted ones make room.
func (s *Store) Tidy(ctx context.Context) (more bool, err error) {
	if err := s.usable(); err != nil {
		return false, err
	}
	defer s.recover(&err)
	bits, err := s.shardBits()
	if err != nil {
		return false, err
	}
	shards, err := s.shards(bits)
	if err != nil {
		return false, err
	}
	worst := -1
	for i, sh := range shards {
		if sh.depth >= wantedDepth && (worst < 0 || sh.depth > shards[worst].depth) {
			worst = i
		}
	}
	if worst < 0 {
		s.credit = min(s.credit, maxCredit)
		return false, nil
	}
	if sh := shards[worst]; sh.depth < maxDepth && s.credit < sh.bytes {
		return false, nil
	}
	s.credit = max(0, s.credit-shards[worst].bytes)
	return true, s.fault(s.db.Compact(ctx, groupStart(worst<<bits), groupStart((worst+1)<<bits), false))
}

// maxCredit bounds what was saved up, so that a quiet time is not followed by much merging at once.
const maxCredit = 4 * shardBytes

func groupOf(key []byte) int { return int(binary.BigEndian.Uint16(key)) }

// shards looks at all files. A file of several shards counts for each.
func (s *Store) shards(bits int) ([]shard, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, s.fault(err)
	}
	out := make([]shard, 0x10000>>bits)
	for level, tables := range levels {
		for _, t := range tables {
			for i := groupOf(t.Smallest.UserKey) >> bits; i <= groupOf(t.Largest.UserKey)>>bits; i++ {
				out[i].bytes += int64(t.Size)
				if level < bottomLevel {
					out[i].depth++
				}
			}
		}
	}
	return out, nil
}

// shardBits is log2 of the key groups of a shard, for the size and the key groups that the store has now.
func (s *Store) shardBits() (int, error) {
	levels, err := s.db.SSTables()
	if err != nil {
		return 0, s.fault(err)
	}
	return shardBits(levels), nil
}

func shardBits(levels [][]pebble.SSTableInfo) int {
	var bytes int64
	first, last := 0xffff, 0
	for _, tables := range levels {
		for _, t := range tables {
			bytes += int64(t.Size)
			first, last = min(first, groupOf(t.Smallest.UserKey)), max(last, groupOf(t.Largest.UserKey))
		}
	}
	if bytes == 0 {
		return allGroups
	}
	bits, shards := allGroups, shardsFor(bytes)
	for bits > 0 && max(1, last-first+1)>>bits < shards {
		bits--
	}
	return bits
}
