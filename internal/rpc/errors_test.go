package rpc

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirstream/weir/internal/gateway"
)

var testPeer = peer{"the job master", "host:1"}

func TestErrors_CodesMapOneToOne(t *testing.T) {
	back := map[codes.Code]bool{}
	for code := gateway.Internal; code <= gateway.Canceled; code++ {
		c, ok := codeToGRPC[code]
		if !ok || back[c] || codeFromGRPC(c) != code {
			t.Errorf("code %d becomes %s and that %d", code, c, codeFromGRPC(c))
		}
		back[c] = true
	}
	if len(codeToGRPC) != int(gateway.Canceled) {
		t.Errorf("%d codes are mapped, %d exist", len(codeToGRPC), gateway.Canceled)
	}
}

func TestErrors_OfForeignStatuses_SayWhoAndWhatToDo(t *testing.T) {
	tests := []struct {
		code codes.Code
		want gateway.Code
		text string
		is   error
	}{
		{codes.Unavailable, gateway.Unavailable, "no connection to the job master at host:1: refused (check that it runs", nil},
		{codes.Unimplemented, gateway.FailedPrecondition, "the job master at host:1 does not serve this call: refused (check that the address", nil},
		{codes.DeadlineExceeded, gateway.DeadlineExceeded, "the job master at host:1 did not answer in time", context.DeadlineExceeded},
		{codes.Canceled, gateway.Canceled, "refused", context.Canceled},
		{codes.ResourceExhausted, gateway.ResourceExhausted, "call of the job master at host:1: refused", nil},
		{codes.Unknown, gateway.Internal, "call of the job master at host:1: refused", nil},
		{codes.DataLoss, gateway.Internal, "call of the job master at host:1: refused", nil},
	}
	for _, tt := range tests {
		err := testPeer.decodeError(status.Error(tt.code, "refused"))
		if gateway.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.text) || (tt.is != nil && !errors.Is(err, tt.is)) {
			t.Errorf("%s: got code %d, %v", tt.code, gateway.CodeOf(err), err)
		}
	}
}

func TestErrors_OfAnyLengthAndAnyBytes_Travel(t *testing.T) {
	long := &gateway.Error{Code: gateway.Aborted, Message: strings.Repeat("\xff", 2*MaxErrorBytes), Remedy: "r\xfe", Reason: "R"}
	err := testPeer.decodeError(encodeError(long))
	if gateway.CodeOf(err) != gateway.Aborted || gateway.ReasonOf(err) != "R" {
		t.Fatalf("it became code %d, reason %q", gateway.CodeOf(err), gateway.ReasonOf(err))
	}
	if n := len(err.Error()); n > MaxErrorBytes+100 {
		t.Errorf("the text has %d bytes, at most %d are possible", n, MaxErrorBytes)
	}
}

func TestErrors_OfNoError_IsNone(t *testing.T) {
	if err := encodeError(nil); err != nil {
		t.Error(err)
	}
	if err := testPeer.decodeError(nil); err != nil {
		t.Error(err)
	}
}

func TestErrors_WithAStatus_KeepIt(t *testing.T) {
	err := encodeError(status.Error(codes.ResourceExhausted, "too large"))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("it became %v", err)
	}
}
