package stream

import (
	"fmt"
	"strings"
	"testing"
)

func TestAddMasterHook_KeepsOrder_AndRefusesWhatCannotBeTold(t *testing.T) {
	open := func(HookEnv) (MasterHook, error) { return nil, nil }
	j := NewJob("flights", nil)
	AddMasterHook(j, "lease", open)
	AddMasterHook(j, "accounts", open)
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	hooks := j.MasterHooks()
	if len(hooks) != 2 || hooks[0].ID != "lease" || hooks[1].ID != "accounts" {
		t.Errorf("hooks are %v", hooks)
	}
	for _, c := range []struct {
		add  func(j *Job)
		want string
	}{
		{func(j *Job) { AddMasterHook(j, "lease", open) }, `two master hooks of job flights have the id "lease"`},
		{func(j *Job) { AddMasterHook(j, "", open) }, `the id "" of a master hook of job flights must be letters`},
		{func(j *Job) { AddMasterHook(j, "a b", open) }, `the id "a b" of a master hook of job flights must be letters`},
		{func(j *Job) { AddMasterHook(j, "x", nil) }, `master hook x of job flights has no function that opens it`},
		{func(j *Job) {
			for i := range MaxHooks {
				AddMasterHook(j, fmt.Sprint(i), open)
			}
		}, `job flights has more than 16 master hooks`},
	} {
		j := NewJob("flights", nil)
		AddMasterHook(j, "lease", open)
		c.add(j)
		if err := j.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
