package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weirstream/weir/internal/checkpoint"
	"github.com/weirstream/weir/internal/storage/storagetest"
)

// changes are the operations on one file that change it.
var changes = map[storagetest.Kind]bool{storagetest.WriteFile: true, storagetest.Commit: true, storagetest.Remove: true}

// stormRate is how often an operation in a storm fails before it is done, and behind that.
const stormRate = 0.35

var errDisk = errors.New("disk trouble")

// durability is what the simulation knows of the storage beside the storage itself.
type durability struct {
	unsynced map[string]bool // files that are there and would not survive a crash of the machine
	version  int             // grows with every operation that may have changed something
	quiet    bool            // reads of the invariants are no operations
	actor    *master         // whose operation runs; nil: an executor's
	storm    time.Time       // the job master's way to the storage is bad until then
}

func newDurability() durability { return durability{unsynced: map[string]bool{}} }

// storageFault decides the fate of an operation.
func (s *Sim) storageFault(op storagetest.Op) storagetest.Fault {
	if s.durable.quiet {
		return storagetest.Fault{}
	}
	s.durable.version++
	if changes[op.Kind] {
		delete(s.durable.unsynced, op.Path)
	}
	f := s.operationFault()
	if f.Unsynced && changes[op.Kind] {
		s.durable.unsynced[op.Path] = true
	}
	return f
}

// recordFault decides the fate of an operation on the records of the job master.
func (s *Sim) recordFault(storagetest.Op) storagetest.Fault {
	if s.durable.quiet {
		return storagetest.Fault{}
	}
	return s.operationFault()
}

// operationFault is what can happen to any operation. The process of the job master may die before or behind it, and does nothing after.
func (s *Sim) operationFault() storagetest.Fault {
	after := func(err error) storagetest.Fault { return storagetest.Fault{After: err, Unsynced: s.rng.IntN(2) == 0} }
	m := s.durable.actor
	before, later := s.cfg.Faults.StorageBefore, s.cfg.Faults.StorageAfter
	if m != nil && s.now.Before(s.durable.storm) {
		before, later = stormRate, stormRate
	}
	switch {
	case m != nil && m.life.dying:
		return storagetest.Fault{Before: errDied}
	case m != nil && s.fault("job master dies in a storage operation", s.cfg.Faults.MasterDies):
		m.life.dying = true
		if s.rng.IntN(2) == 0 {
			return storagetest.Fault{Before: errDied}
		}
		return after(errDied)
	case s.fault("storage fails before", before):
		return storagetest.Fault{Before: errDisk}
	case s.fault("storage fails after", later):
		return after(errDisk)
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

// storageStorm makes most of what the job master does with the storage fail, for a while.
func (s *Sim) storageStorm() {
	s.durable.storm = s.now.Add(s.upTo(3 * time.Second))
	s.note("FAULT the job master has trouble with the storage until %s", s.durable.storm.Sub(s.start))
}

// masterMachineCrash is a crash of the machine that runs the job master and has its records.
func (s *Sim) masterMachineCrash() {
	s.note("FAULT the machine of the job master crashes")
	s.records.Crash()
	s.master.crash("its machine has crashed")
	if s.rng.IntN(2) == 0 {
		s.machineCrash()
	}
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
