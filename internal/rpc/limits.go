package rpc

import "time"

// The limits of every server and connection.
const (
	// MaxMessageBytes bounds one message; the largest are acks with inline state and deployments.
	MaxMessageBytes = 64 << 20
	// MaxStreams bounds the calls that one connection has open at a time.
	MaxStreams = 10_000

	// ServerPingAfter is how long a server hears nothing from a client before it asks; PingTimeout is how long an answer may take. A dead
	// process is noticed at once, because its host ends the connection: pings are for dead hosts and cut cables.
	ServerPingAfter = 5 * time.Second
	// ClientPingAfter is the same for a client; gRPC allows no less.
	ClientPingAfter = 10 * time.Second
	// PingTimeout also bounds how long sent bytes may stay unacknowledged.
	PingTimeout = 5 * time.Second
	// minPingInterval is what a server tolerates before it closes the connection of a client that pings too often.
	minPingInterval = 2 * time.Second

	// HandshakeTimeout bounds the setup of a connection, at both sides.
	HandshakeTimeout = 5 * time.Second
	// The delays between attempts to connect: an executor that comes back must be found quickly.
	connectBaseDelay  = 50 * time.Millisecond
	connectMaxDelay   = time.Second
	connectMultiplier = 1.6
	connectJitter     = 0.2

	// CallTimeout is the deadline of a call whose context has none.
	CallTimeout = 10 * time.Second
	// WaitTimeout is that of a call which waits for something to come about: a submission, a cancellation, a checkpoint, a savepoint.
	WaitTimeout = 10 * time.Minute

	// StopGrace is how long running calls may go on when a server stops.
	StopGrace = 5 * time.Second
)
