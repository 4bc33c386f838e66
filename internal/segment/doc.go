// Package segment puts the state that several tasks of an executor write for one checkpoint into one file, a segment.
//
// Owns: which piece of state goes into which segment, when a segment is published, and when it may be deleted (core.go, pure); the files that are
// being written (set.go, file.go).
//
// Promises: Commit of a part answers nil only when every segment with a piece of it is durable. A task that fails, is canceled or gives a
// checkpoint up never holds up the others, and what it wrote into their segment is only waste. An error of the storage fails exactly the
// parts with pieces in that segment. A published segment is deleted only when each part with a piece in it says that nothing can refer to it.
// No name is used twice.
//
// Goroutines: one for each segment that is being written, which alone touches its file; Wait returns when all have ended. A Set may be used by any
// number of goroutines, a Part by one.
//
// Not here: files (package storage), what is in a piece and how large pieces have a file of their own (package task).
//
// Start at: core.go.
//
//	event                         effects
//	Place(checkpoint, task)       Write into the open segment; before it Open if there is none; Full at the limit
//	Missed(segment, task)         Discard if nobody is left in it
//	Done(checkpoint, task)        Publish when every task of the job has said so, else Arm for the first one
//	Settle(checkpoint, task)      Discard or Remove when nobody is left that may refer to it, Publish when all others are done
//	Tick                          Publish what has lingered
//	Failed, Published(segment)    Remove if nobody is left in it
//	Join, Leave(task)             Publish when all that are left are done
package segment
