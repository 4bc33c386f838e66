package gateway

import "fmt"

// CheckRegistration refuses an executor that does not say who and where it is.
func CheckRegistration(r Registration) error {
	bad := func(format string, args ...any) error {
		return &Error{
			Code: InvalidArgument, Reason: ReasonBadParameter, Message: fmt.Sprintf(format, args...),
			Remedy: "correct the settings of the executor",
		}
	}
	switch {
	case r.Executor == "":
		return bad("the registration names no executor id")
	case r.Incarnation == "":
		return bad("the registration of executor %s names no incarnation", r.Executor)
	case r.Address == "":
		return bad("the registration of executor %s names no address", r.Executor)
	case r.Slots < 1:
		return bad("executor %s offers %d slots, at least 1 is needed", r.Executor, r.Slots)
	}
	return nil
}
