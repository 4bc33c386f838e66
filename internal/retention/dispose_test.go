package retention

import (
	"errors"
	"testing"

	"github.com/weirstream/weir/internal/checkpoint"
)

func TestCheckDisposable(t *testing.T) {
	whole, err := checkpoint.EncodeMetadata(sample())
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)-1]++
	const state, late = "per-origin-0-a1-c7.state", "per-origin-1-a2-c7.state"
	for _, c := range []struct {
		what     string
		name     string
		files    []string
		metadata []byte
		ok       bool
	}{
		{"a checkpoint", "chk-7", []string{checkpoint.MetadataFile, state}, whole, true},
		{"with a late file", "chk-7", []string{checkpoint.MetadataFile, state, late}, whole, true},
		{"one that was moved", "of-friday", []string{checkpoint.MetadataFile, state}, whole, true},
		{"a damaged one", "savepoint-2f6c-01", []string{checkpoint.MetadataFile, state}, damaged, true},
		{"half deleted", "savepoint-2f6c-01", []string{state}, nil, true},
		{"never completed", "chk-7", nil, nil, true},
		{"another directory", "home", []string{state}, nil, false},
		{"another directory, empty", "home", nil, nil, false},
		{"another program's metadata", "chk-7", []string{checkpoint.MetadataFile}, []byte("<xml>"), false},
		{"a foreign file", "chk-7", []string{checkpoint.MetadataFile, state, "notes.txt"}, whole, false},
		{"a checkpoint deeper down", "chk-7", []string{checkpoint.MetadataFile, "chk-8/" + checkpoint.MetadataFile}, whole, false},
	} {
		err := CheckDisposable(c.name, c.files, c.metadata)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotOurs) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
