package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirstream/weir/internal/gateway"
)

// The exit codes.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitCanceled = 3
	exitLeft     = 130 // interrupted, and what was going on goes on
)

const exitCodes = `Exit codes: 0 done, 1 failed, 2 used wrongly, 3 the job was canceled, 130 interrupted.`

// exitError is an error with the exit code that it leads to.
type exitError struct {
	code int
	err  error
	hint bool // names the help of the command
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error { return &exitError{exitUsage, err, true} }

func usagef(format string, args ...any) error { return usageError(fmt.Errorf(format, args...)) }

// namedError is an error about a setting.
type namedError struct {
	name string
	err  error
}

func (e *namedError) Error() string { return e.name + ": " + e.err.Error() }

func (e *namedError) Unwrap() error { return e.err }

// report prints err and gives its exit code.
func (p Process) report(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	code, hint := exitFailed, false
	var e *exitError
	switch {
	case errors.As(err, &e):
		code, hint = e.code, e.hint
	case isRefusal(err):
		code = exitUsage
	case errors.Is(err, context.Canceled):
		code, err = exitLeft, errors.New("interrupted")
	}
	line(p.Stderr, "%s: %s", p.Name, errorLine(err))
	if hint {
		line(p.Stderr, "Run '%s --help' for usage.", cmd.CommandPath())
	}
	return code
}

// isRefusal reports whether the job master refused a request because of what the user has written in it.
func isRefusal(err error) bool {
	return gateway.CodeOf(err) == gateway.InvalidArgument || gateway.ReasonOf(err) == gateway.ReasonUnknownJobName
}

// reasonUnreachable is what package rpc gives as the reason when there is no connection.
const reasonUnreachable = "UNREACHABLE"

// errorLine is the text of an error for people. It is always one line, without the words that gRPC puts around the error of a connection.
func errorLine(err error) string {
	text := err.Error()
	if _, rest, found := strings.Cut(text, `connection error: desc = "transport: Error while dialing: `); found {
		if cause, after, found := strings.Cut(rest, `"`); found {
			before, _, _ := strings.Cut(text, "connection error: desc")
			text = before + cause + after
		}
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
