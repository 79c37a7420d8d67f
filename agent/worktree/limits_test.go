package worktree_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent/worktree"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/local"
)

// slowSandbox is a sandbox in which git never ends. It records the timeouts.
type slowSandbox struct {
	env.Environment
	opening int
	limits  []time.Duration
}

func (s *slowSandbox) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if s.opening < 2 { // find the repository and capture the state
		s.opening++
		return s.Environment.Execute(ctx, c)
	}
	s.limits = append(s.limits, c.Timeout)
	return env.Result{ExitCode: -1, TimedOut: true}, nil
}

// Each try leaves time for the ones with smaller limits.
func TestTimePerTry(t *testing.T) {
	t.Parallel()
	dir := repository(t, seed, "")
	sb := &slowSandbox{Environment: sandbox(t, local.Config{Dir: dir})}
	tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := tree.Diff(ctx); err == nil {
		t.Error("there is a diff")
	}
	if len(sb.limits) != 4 {
		t.Fatalf("%d tries, want 4", len(sb.limits))
	}
	for _, limit := range sb.limits {
		if limit > time.Minute || limit < 30*time.Second {
			t.Errorf("a try may take %v of the two minutes", limit)
		}
	}
}

// The scripts use the first disk with enough space, and list all disks if there
// is none.
func TestDiskSpace(t *testing.T) {
	for name, tt := range map[string]struct {
		df   string // free space as printed by df
		room bool
	}{
		"elsewhere": {`case $2 in /dev/shm) free=99999999 ;; *) free=0 ;; esac`, true},
		"nowhere":   {`free=5`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, dir := t.TempDir(), repository(t, seed, "")
			sh(t, bin, "printf '#!/bin/sh\n%s\nprintf \"File system 1024-blocks Used Available Capacity Mounted on\\\\ntmp fs 1 1 %%s 99%%%% /mnt/1 2\\\\n\" $free' '"+tt.df+"' > df; chmod +x df")
			sb := sandbox(t, local.Config{Dir: dir, Env: map[string]string{"PATH": bin + ":" + os.Getenv("PATH")}})
			tree, err := worktree.Open(t.Context(), sb, worktree.Config{})
			if tt.room {
				if err != nil {
					t.Fatal(err)
				}
				sh(t, dir, "echo x >> a.txt")
				if d, err := tree.Diff(t.Context()); err != nil || len(d.Patch) == 0 {
					t.Errorf("%v, %+v", err, d)
				}
			}
			if !tt.room && (!errors.Is(err, worktree.ErrNoSpace) || !strings.Contains(err.Error(), "/dev/shm (5 KiB free)")) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
