package task

import (
	"errors"
	"sync"
)

// MaxMail bounds the mailbox of a task. A task that is behind by so many messages hangs in its user's code.
const MaxMail = 1024

// ErrMailboxFull is what a sender gets when the task does not read its mail.
var ErrMailboxFull = errors.New("the mailbox of the task is full: its code does not return")

// ErrMailboxClosed is what a sender gets when the task has ended.
var ErrMailboxClosed = errors.New("the task has ended")

// mailbox is the inbox of a task: events from other goroutines, and one signal that also says that inputs have something.
type mailbox struct {
	signal chan struct{} // capacity 1
	mu     struct {
		sync.Mutex
		events []Event
		closed bool
	}
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

// wake makes the loop look again. It never blocks.
func (m *mailbox) wake() {
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

func (m *mailbox) post(ev Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.mu.closed:
		return ErrMailboxClosed
	case len(m.mu.events) >= MaxMail:
		return ErrMailboxFull
	}
	m.mu.events = append(m.mu.events, ev)
	m.wake()
	return nil
}

// take returns all mail.
func (m *mailbox) take() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.mu.events
	m.mu.events = nil
	return events
}

func (m *mailbox) close() {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.events = nil
	m.mu.Unlock()
}
