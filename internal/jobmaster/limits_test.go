package jobmaster

import "testing"

func TestSender_RefusesWhatDoesNotFit(t *testing.T) {
	s := &sender{calls: make(chan call, senderCapacity)}
	for range senderCapacity {
		if !s.send(nil) {
			t.Fatal("a call was refused while there was room")
		}
	}
	if s.send(nil) {
		t.Error("a call was taken beyond the capacity")
	}
}
