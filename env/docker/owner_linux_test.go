package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// TestOwnerState: an owner counts as dead only if that is proven.
func TestOwnerState(t *testing.T) {
	t.Parallel()
	const pid = 4711
	o := owner{Host: "h", Boot: "b", Namespace: "pid:[1]", PID: os.Getpid(), Start: "7"}
	other := owner{Host: "h", Boot: "b", Namespace: "pid:[1]", PID: pid, Start: "100"}
	with := func(change func(*owner)) owner {
		changed := other
		change(&changed)
		return changed
	}
	stat := func(state, start string) string {
		return fmt.Sprintf("%d (a) b) %s %s%s 0 0\n", pid, state, strings.Repeat("0 ", 18), start)
	}
	self := strconv.Itoa(os.Getpid())
	for name, tt := range map[string]struct {
		other owner
		self  string // target of /proc/self
		stat  string // content of /proc/PID/stat; empty if the file is missing
		kill  error
		want  ownerState
	}{
		"it runs":                         {other, self, stat("S", "100"), nil, ownerAlive},
		"of another user":                 {other, self, stat("S", "100"), syscall.EPERM, ownerAlive},
		"its id is used again":            {other, self, stat("S", "200"), syscall.EPERM, ownerDead},
		"it was not reaped":               {other, self, stat("Z", "100"), nil, ownerDead},
		"it is gone":                      {other, self, "", syscall.ESRCH, ownerDead},
		"hidden":                          {other, self, "", syscall.EPERM, ownerAlive},
		"hidden, but signals are allowed": {other, self, "", nil, ownerAlive},
		"signals are refused":             {other, self, "", syscall.ENOSYS, ownerAlive},
		"a truncated line":                {other, self, "4711 (a", nil, ownerAlive},
		"no /proc":                        {other, "", "", nil, ownerAlive},
		"/proc of another namespace":      {other, "1", stat("S", "200"), nil, ownerAlive},
		"/proc of another, and it's gone": {other, "1", stat("S", "100"), syscall.ESRCH, ownerDead},
		"no start in the label":           {with(func(o *owner) { o.Start = "" }), self, stat("S", "200"), nil, ownerAlive},
		"no start, and it is gone":        {with(func(o *owner) { o.Start = "" }), self, "", syscall.ESRCH, ownerDead},
		"another boot":                    {with(func(o *owner) { o.Boot = "c" }), self, "", syscall.ESRCH, ownerUnknown},
		"a boot without a name":           {with(func(o *owner) { o.Boot = "" }), self, "", syscall.ESRCH, ownerUnknown},
		"another namespace":               {with(func(o *owner) { o.Namespace = "pid:[2]" }), self, stat("S", "200"), syscall.ESRCH, ownerUnknown},
		"no namespace in the label":       {with(func(o *owner) { o.Namespace = "" }), self, stat("S", "200"), syscall.ESRCH, ownerUnknown},
		"another host":                    {with(func(o *owner) { o.Host = "i" }), self, "", syscall.ESRCH, ownerForeign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc := t.TempDir()
			if tt.self != "" {
				require.NoError(t, os.Symlink(tt.self, filepath.Join(proc, "self")))
			}
			if tt.stat != "" {
				dir := filepath.Join(proc, strconv.Itoa(pid))
				require.NoError(t, os.Mkdir(dir, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte(tt.stat), 0o600))
			}
			p := procTable{proc: proc, kill: func(id int, sig syscall.Signal) error {
				if id != pid || sig != 0 {
					t.Errorf("signal %d to process %d", sig, id)
				}
				return tt.kill
			}}
			assert.Equal(t, tt.want, o.stateIn(tt.other, p), "state")
		})
	}
	// Two owners without a boot id and a namespace are not comparable.
	none := owner{Host: "h", PID: pid}
	if got := (owner{Host: "h"}).stateIn(none, procTable{proc: t.TempDir(), kill: func(int, syscall.Signal) error { return syscall.ESRCH }}); got != ownerUnknown {
		t.Errorf("without boot and namespace: state %d, want %d", got, ownerUnknown)
	}
}
