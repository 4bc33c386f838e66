// Package rpc puts the contract of package gateway, and the data exchange, on gRPC.
//
// Owns: the conversion between domain values and the messages of proto/weir/v1, the mapping between gateway.Error and gRPC statuses, the
// settings of every gRPC server and connection, and the frames of the exchange.
//
// Promises: a client here behaves like the value that the server at the other end was given, errors included. What arrives from the wire is
// validated before it reaches the domain. Durations are rounded away from zero to the unit of their field, so that one that is set stays set.
//
// Goroutines: those of gRPC; Serve's own end before it returns.
//
// Not here: decisions. A handler decodes, makes one call and encodes. Package pb is generated and is imported by this package only.
//
// Start at: server.go and client.go, then errors.go.
package rpc
