package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

var errDisk = errors.New("disk trouble")

// durability is what the simulation knows of the storage beside the storage itself.
type durability struct {
	unsynced map[string]bool // files that are there and would not survive a crash of the machine
	version  int             // grows with every operation that may have changed something
	quiet    bool            // reads of the invariants are no operations
}

func newDurability() durability { return durability{unsynced: map[string]bool{}} }

// storageFault decides the fate of an operation.
func (s *Sim) storageFault(op storagetest.Op) storagetest.Fault {
	if s.durable.quiet {
		return storagetest.Fault{}
	}
	s.durable.version++
	switch op.Kind {
	case storagetest.WriteFile, storagetest.Commit, storagetest.Remove:
		delete(s.durable.unsynced, op.Path)
	}
	switch {
	case s.fault("storage fails before", s.cfg.Faults.StorageBefore):
		return storagetest.Fault{Before: errDisk}
	case s.fault("storage fails after", s.cfg.Faults.StorageAfter):
		f := storagetest.Fault{After: errDisk, Unsynced: s.rng.IntN(2) == 0}
		if f.Unsynced {
			s.durable.unsynced[op.Path] = true
		}
		return f
	}
	return storagetest.Fault{}
}

// storageDelay is how long an operation takes.
func (s *Sim) storageDelay() time.Duration {
	d := 200*time.Microsecond + s.upTo(8*time.Millisecond)
	if s.fault("storage stalls", s.cfg.Faults.StorageStall) {
		d += s.upTo(maxStall)
	}
	return d
}

// machineCrash is a crash of the machine that has the files: what was not synced is gone.
func (s *Sim) machineCrash() {
	s.note("FAULT the storage machine crashes")
	s.store.Crash()
	s.durable.version++
	clear(s.durable.unsynced)
}

// quietly reads the storage without faults.
func (s *Sim) quietly(read func()) {
	s.durable.quiet = true
	read()
	s.durable.quiet = false
}

// readMetadata reads what is in a checkpoint's directory now.
func (s *Sim) readMetadata(dir string) (md *checkpoint.Metadata, err error) {
	s.quietly(func() {
		var data []byte
		if data, err = s.store.ReadFile(context.Background(), dir+"/"+checkpoint.MetadataFile, checkpoint.MaxMetadataBytes); err == nil {
			md, err = checkpoint.DecodeMetadata(data)
		}
	})
	return md, err
}

// list names all files.
func (s *Sim) list() (names []string) {
	s.quietly(func() {
		infos, err := s.store.List(context.Background(), "")
		if err != nil {
			panic(err) // the fake lists without faults
		}
		for _, i := range infos {
			names = append(names, i.Path)
		}
	})
	return names
}

// isDurable reports whether the checkpoint in dir would survive a crash of the machine.
func (s *Sim) isDurable(dir string) bool {
	for path := range s.durable.unsynced {
		if strings.HasPrefix(path, dir+"/") {
			if _, err := s.readMetadata(dir); err != nil || strings.HasSuffix(path, checkpoint.MetadataFile) {
				return false
			}
		}
	}
	_, err := s.readMetadata(dir)
	return err == nil
}
