package storage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirstream/weir/internal/storage"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

var errLine = errors.New("the line is dead")

// faults gives each operation of a kind its fault, in order; later ones have none.
func faults(m *storagetest.Mem, of map[storagetest.Kind][]storagetest.Fault) {
	m.SetFaults(func(op storagetest.Op) storagetest.Fault {
		list := of[op.Kind]
		if len(list) == 0 {
			return storagetest.Fault{}
		}
		of[op.Kind] = list[1:]
		return list[0]
	})
}

func TestPublish_SaysWhatHasBecomeOfTheWrite(t *testing.T) {
	const name = "job/chk-1/_metadata"
	before, after := storagetest.Fault{Before: errLine}, storagetest.Fault{After: errLine}
	unsynced := storagetest.Fault{After: errLine, Unsynced: true}
	type fault = map[storagetest.Kind][]storagetest.Fault
	for _, c := range []struct {
		title     string
		old       string // content that is there before
		faults    fault
		fails     bool
		uncertain bool
		durable   bool // after a crash of the machine
	}{
		{title: "no fault", durable: true},
		{title: "not written", faults: fault{storagetest.WriteFile: {before}}, fails: true},
		{title: "written, the answer was lost", faults: fault{storagetest.WriteFile: {after}}, durable: true},
		{title: "written and not synced", faults: fault{storagetest.WriteFile: {unsynced}}, durable: true},
		{title: "not synced, and not the second time either", faults: fault{storagetest.WriteFile: {unsynced, unsynced}}, fails: true, uncertain: true},
		{title: "not listable", faults: fault{storagetest.WriteFile: {before}, storagetest.List: {before}}, fails: true, uncertain: true},
		{title: "not readable", faults: fault{storagetest.WriteFile: {after}, storagetest.ReadFile: {before}}, fails: true, uncertain: true, durable: true},
		{title: "our own of an earlier try", old: "content", durable: true},
		{title: "somebody else's", old: "other", fails: true, uncertain: true, durable: true},
		{title: "somebody else's, longer", old: "something longer", fails: true, uncertain: true, durable: true},
	} {
		t.Run(c.title, func(t *testing.T) {
			m := storagetest.NewMem()
			if c.old != "" {
				if err := m.WriteFile(t.Context(), name, []byte(c.old), storage.CreateOnly); err != nil {
					t.Fatal(err)
				}
			}
			if c.faults != nil {
				faults(m, c.faults)
			}
			err := storage.Publish(t.Context(), m, name, []byte("content"))
			if (err != nil) != c.fails || errors.Is(err, storage.ErrUncertain) != c.uncertain {
				t.Errorf("error %v", err)
			}
			if err != nil && c.old == "" && !errors.Is(err, errLine) {
				t.Errorf("the error hides its cause: %v", err)
			}
			m.SetFaults(nil)
			m.Crash()
			data, err := m.ReadFile(t.Context(), name, 100)
			if (err == nil) != c.durable {
				t.Errorf("after a crash: %q, %v", data, err)
			}
			if c.old != "" && string(data) != c.old {
				t.Errorf("the file of before was replaced by %q", data)
			}
		})
	}
}

// Tests named TestFault_Bn_ are those of the table in docs/faults.md.

// The write is applied and the line breaks; or it is tried again, and finds what the first try has written. Neither is a conflict.
func TestFault_B94_OwnEntryFoundByTheRetry_IsSuccess(t *testing.T) {
	m := storagetest.NewMem()
	faults(m, map[storagetest.Kind][]storagetest.Fault{storagetest.WriteFile: {{After: errLine}}})
	for range 2 {
		if err := storage.Publish(t.Context(), m, "chk-1/_metadata", []byte("content")); err != nil {
			t.Fatalf("the data would be discarded: %v", err)
		}
	}
	m.Crash()
	if data, err := m.ReadFile(t.Context(), "chk-1/_metadata", 100); string(data) != "content" {
		t.Errorf("after a crash: %q, %v", data, err)
	}
}

// The time of the caller has run out; what an earlier try has written is found all the same.
func TestPublish_AfterTheTimeOfTheCaller_StillLooks(t *testing.T) {
	m := storagetest.NewMem()
	if err := storage.Publish(t.Context(), m, "chk-1/_metadata", []byte("content")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := storage.Publish(ctx, m, "chk-1/_metadata", []byte("content")); err != nil {
		t.Errorf("it is there: %v", err)
	}
	if err := storage.Publish(ctx, m, "chk-2/_metadata", []byte("content")); !errors.Is(err, context.Canceled) || errors.Is(err, storage.ErrUncertain) {
		t.Errorf("it is surely not there: %v", err)
	}
}

// On a real disk: the second publication of the same content is the first one's, of another content it is refused.
func TestPublish_OnDisk_IsRepeatable(t *testing.T) {
	s, err := storage.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := storage.Publish(t.Context(), s, "a/_metadata", []byte("content")); err != nil {
			t.Fatal(err)
		}
	}
	if err := storage.Publish(t.Context(), s, "a/_metadata", []byte("x")); !errors.Is(err, storage.ErrUncertain) {
		t.Errorf("another content: %v", err)
	}
}
