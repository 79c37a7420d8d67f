package docker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Only what proves it makes an owner dead: whatever cannot be seen may live.
func TestJudgeOwner(t *testing.T) {
	t.Parallel()
	const pid = 4711
	o := owner{Host: "h", Boot: "b", Space: "pid:[1]", PID: os.Getpid(), Start: "7"}
	other := owner{Host: "h", Boot: "b", Space: "pid:[1]", PID: pid, Start: "100"}
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
		self  string // where /proc/self leads
		stat  string // of the process; hidden, or gone, where empty
		kill  error
		want  standing
	}{
		"it runs":                         {other, self, stat("S", "100"), nil, living},
		"of another user":                 {other, self, stat("S", "100"), syscall.EPERM, living},
		"its id is used again":            {other, self, stat("S", "200"), syscall.EPERM, dead},
		"it was not reaped":               {other, self, stat("Z", "100"), nil, dead},
		"it is gone":                      {other, self, "", syscall.ESRCH, dead},
		"hidden":                          {other, self, "", syscall.EPERM, living},
		"hidden from a mini that may":     {other, self, "", nil, living},
		"signals are refused":             {other, self, "", syscall.ENOSYS, living},
		"a torn line":                     {other, self, "4711 (a", nil, living},
		"no /proc":                        {other, "", "", nil, living},
		"/proc of another namespace":      {other, "1", stat("S", "200"), nil, living},
		"/proc of another, and it's gone": {other, "1", stat("S", "100"), syscall.ESRCH, dead},
		"no start in the label":           {with(func(o *owner) { o.Start = "" }), self, stat("S", "200"), nil, living},
		"no start, and it is gone":        {with(func(o *owner) { o.Start = "" }), self, "", syscall.ESRCH, dead},
		"another boot":                    {with(func(o *owner) { o.Boot = "c" }), self, "", syscall.ESRCH, unknown},
		"a boot without a name":           {with(func(o *owner) { o.Boot = "" }), self, "", syscall.ESRCH, unknown},
		"another namespace":               {with(func(o *owner) { o.Space = "pid:[2]" }), self, stat("S", "200"), syscall.ESRCH, unknown},
		"no namespace in the label":       {with(func(o *owner) { o.Space = "" }), self, stat("S", "200"), syscall.ESRCH, unknown},
		"another host":                    {with(func(o *owner) { o.Host = "i" }), self, "", syscall.ESRCH, foreign},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proc := t.TempDir()
			if tt.self != "" {
				if err := os.Symlink(tt.self, filepath.Join(proc, "self")); err != nil {
					t.Fatal(err)
				}
			}
			if tt.stat != "" {
				dir := filepath.Join(proc, strconv.Itoa(pid))
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(tt.stat), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := processes{proc: proc, kill: func(id int, sig syscall.Signal) error {
				if id != pid || sig != 0 {
					t.Errorf("signal %d to process %d", sig, id)
				}
				return tt.kill
			}}
			if got := o.judge(tt.other, p); got != tt.want {
				t.Errorf("standing %d, want %d", got, tt.want)
			}
		})
	}
	// Two owners without a boot, or a namespace, have nothing in common.
	none := owner{Host: "h", PID: pid}
	if got := (owner{Host: "h"}).judge(none, processes{proc: t.TempDir(), kill: func(int, syscall.Signal) error { return syscall.ESRCH }}); got != unknown {
		t.Errorf("without boot and namespace: standing %d, want %d", got, unknown)
	}
}

// hiddenVar makes the test binary the first process of namespaces of its own, in
// which /proc hides the processes of other users.
const hiddenVar = "MINI_DOCKER_TEST_HIDDEN"

// An owner of another user is not seen where /proc is mounted with hidepid, and
// is not taken for dead as long as it runs.
func TestOwnerThatProcHides(t *testing.T) {
	if os.Getenv(hiddenVar) != "" {
		hiddenOwner(t)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwnerThatProcHides$", "-test.v")
	cmd.Env = append(os.Environ(), hiddenVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		t.Skip("namespaces take root's rights: ", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text := string(out); strings.Contains(text, "--- SKIP") {
		t.Skip(text)
	} else if !strings.Contains(text, "judged twice") {
		t.Errorf("the test within did not end: %s", out)
	}
}

// hiddenOwner is the part of the test within the namespaces.
func hiddenOwner(t *testing.T) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skip("mounts cannot be made private: ", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, "hidepid=2"); err != nil {
		t.Skip("/proc cannot be mounted with hidepid: ", err)
	}
	running := exec.CommandContext(t.Context(), "cat")
	stdin, err := running.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	other, err := self()
	if err != nil {
		t.Fatal(err)
	}
	other.PID = running.Process.Pid
	if other.Start, _ = thisSystem.start(other.PID); other.Start == "" {
		t.Fatal("the start of an own process cannot be read")
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil { // group 0 sees everything
		t.Skip("the user cannot be changed: ", err)
	}
	o, err := self()
	if err != nil {
		t.Fatal(err)
	}
	if start, _ := thisSystem.start(other.PID); start != "" {
		t.Fatalf("/proc shows process %d of another user, which began at %s", other.PID, start)
	}
	if got := o.sees(other); got != living {
		t.Errorf("standing of a hidden owner that runs: %d, want %d", got, living)
	}
	if err := errors.Join(stdin.Close(), running.Wait()); err != nil {
		t.Fatal(err)
	}
	if got := o.sees(other); got != dead {
		t.Errorf("standing of a hidden owner that is gone: %d, want %d", got, dead)
	}
	t.Log("judged twice")
}
