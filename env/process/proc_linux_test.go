package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

func TestParseStat(t *testing.T) {
	rest := " 5 10 10 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 4096 10 18446744073709551615 1 1\n"
	for name, c := range map[string]struct {
		line  string
		comm  string
		state byte
	}{
		"plain":       {"42 (sleep) S", "sleep", 'S'},
		"space":       {"42 (a b) R", "a b", 'R'},
		"parenthesis": {"42 (a) S 1 (b)) Z", "a) S 1 (b)", 'Z'},
		"line end":    {"42 (a\n(b) T", "a\n(b", 'T'},
		"empty":       {"42 () S", "", 'S'},
		"not UTF-8":   {"42 (\xff\xfe) S", "\xff\xfe", 'S'},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseStat([]byte(c.line + rest))
			want := proc{procID: procID{42, 123456}, name: c.comm, state: c.state, parent: 5, group: 10, session: 10, threads: 1}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(proc{}, procID{})); !ok || diff != "" {
				t.Errorf("ok %v; process differs (-want +got):\n%s", ok, diff)
			}
		})
	}
	for _, bad := range []string{"", "42", "42 (x", "x (y) S 1 2", "42 (x) S", "42 (x) S 1 2 3", "42 (x) SS" + rest, ") 42 (", "42 (x) S a" + rest} {
		if p, ok := parseStat([]byte(bad)); ok {
			t.Errorf("%q parsed as %+v", bad, p)
		}
	}
}

// TestScanOddNames scans a process whose name looks like a line of /proc/PID/stat.
func TestScanOddNames(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep here")
	}
	name := ") Z 1 (\n 2"
	link := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Symlink(sleep, link))
	cmd := exec.CommandContext(t.Context(), link, "60")
	require.NoError(t, cmd.Start())
	p, ok := scanProcs()[cmd.Process.Pid]
	for range 10_000 { // exec sets the name a moment after Start has returned
		if p.name == name {
			break
		}
		time.Sleep(time.Millisecond)
		p, ok = scanProcs()[cmd.Process.Pid]
	}
	if !ok || p.name != name || p.parent != os.Getpid() || !p.isAlive() {
		t.Errorf("found %v: %+v", ok, p)
	}
	require.NoError(t, cmd.Process.Kill())
	assert.Error(t, cmd.Wait(), "a killed process exited with status 0")
}

func TestAlive(t *testing.T) {
	for name, c := range map[string]struct {
		proc
		want bool
	}{
		"sleeping":              {proc{state: 'S', threads: 1}, true},
		"stopped":               {proc{state: 'T', threads: 1}, true},
		"zombie":                {proc{state: 'Z', threads: 1}, false},
		"dead":                  {proc{state: 'X', threads: 0}, false},
		"first thread has left": {proc{state: 'Z', threads: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, c.isAlive(), "alive")
		})
	}
}

func TestProtects(t *testing.T) {
	self := os.Getpid()
	p := func(pid, parent, session int) proc {
		return proc{procID: procID{pid, uint64(pid)}, parent: parent, session: session, state: 'S', threads: 1}
	}
	server := p(self+10, self, self+10)
	protected := newProtectedSet([]proc{server})
	reused := p(self+10, self, self+99)
	reused.start++
	for name, c := range map[string]struct {
		table []proc // the last one is tested
		want  bool
	}{
		"the server":               {[]proc{server}, true},
		"its worker":               {[]proc{server, p(self+11, self+10, self+10)}, true},
		"its worker in a session":  {[]proc{server, p(self+11, self+10, self+11)}, true},
		"its orphan, same session": {[]proc{p(self+11, self, self+10)}, true},
		"child of that orphan":     {[]proc{p(self+11, self, self+10), p(self+12, self+11, self+12)}, true},
		"a new shell":              {[]proc{server, p(self+20, self, self+20)}, false},
		"child of a new shell":     {[]proc{server, p(self+20, self, self+20), p(self+21, self+20, self+20)}, false},
		"the server's pid again":   {[]proc{reused}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tab := table{}
			for _, q := range c.table {
				tab[q.pid] = q
			}
			assert.Equal(t, c.want, protected.contains(tab)(c.table[len(c.table)-1]), "protects")
		})
	}
}

// TestTableLoops: a table that is not read atomically may show two processes as each
// other's parents.
func TestTableLoops(t *testing.T) {
	a, b := proc{procID: procID{10, 1}, parent: 11}, proc{procID: procID{11, 1}, parent: 10}
	tab := table{10: a, 11: b}
	visits := 0
	tab.walkUp(a, 1, func(proc) bool { visits++; return true })
	if visits > 3 {
		t.Errorf("%d ancestors", visits)
	}
	assert.Equal(t, 0, len(tab.descendantsOf(1)), "descendants")
}

func TestMergeAndFindShell(t *testing.T) {
	got := MergeEnv([]string{"A=1", "B=2", "A=3", "C=4"}, map[string]string{"B": "5", "D": "6=7"})
	assert.Equal(t, []string{"A=3", "C=4", "B=5", "D=6=7"}, got, "environment differs")
	dir := t.TempDir()
	for _, name := range []string{"bash", "mine"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	for _, c := range []struct{ shell, environ, want []string }{
		{nil, []string{"PATH=" + dir}, []string{dir + "/bash", "-c"}},
		{[]string{"mine", "-x"}, []string{"PATH=relative:" + dir}, []string{dir + "/mine", "-x"}},
		{[]string{dir + "/bash", "-lc"}, nil, []string{dir + "/bash", "-lc"}},
		{[]string{"/none/bash", "-lc"}, []string{"PATH="}, []string{"/bin/sh", "-lc"}},
		{[]string{"no-such-shell"}, nil, nil},
	} {
		got, ok := FindShell(c.shell, c.environ)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want != nil) {
			t.Errorf("%s: ok %v, differs (-want +got):\n%s", strings.Join(c.shell, " "), ok, diff)
		}
	}
}

// TestDeepChain: descendantsOf and contains handle a chain of thousands of processes.
func TestDeepChain(t *testing.T) {
	const depth = 20_000
	self := os.Getpid()
	tab := table{self: {procID: procID{self, 1}}}
	parent := self
	for i := range depth {
		pid := 1_000_000 + i
		tab[pid] = proc{procID: procID{pid, uint64(i)}, parent: parent, session: pid, state: 'S', threads: 1}
		parent = pid
	}
	protected := newProtectedSet([]proc{tab[1_000_000+depth/2]})
	chain := tab.descendantsOf(self)
	protects := protected.contains(tab)
	n := 0
	for _, p := range chain {
		if protects(p) {
			n++
		}
	}
	if len(chain) != depth || n != depth/2 {
		t.Errorf("%d descendants, %d protected; want %d, %d", len(chain), n, depth, depth/2)
	}
}

// TestMemoryGuard: near the limit of a group whose processes the kernel would all kill,
// the guard kills the largest process, and no other.
func TestMemoryGuard(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(dir, "new")
		require.NoError(t, os.WriteFile(temporary, []byte(text), 0o600))
		require.NoError(t, os.Rename(temporary, filepath.Join(dir, name)))
	}
	write("memory.max", "1000000000\n")
	if startMemoryGuard(dir) != nil {
		t.Error("a guard without memory.oom.group")
	}
	write("memory.oom.group", "1\n")
	write("memory.stat", "anon 1000000\nfile 900000000\nkernel 1000\nshmem 0\n")
	small := exec.Command("sleep", "1000")
	large := exec.Command("bash", "-c", `x=$(head -c 30000000 /dev/zero | tr '\0' x); sleep 1000 & wait`)
	for _, cmd := range []*exec.Cmd{small, large} {
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
	}
	for deadline := time.Now().Add(2 * time.Minute); privatePages(large.Process.Pid) < 5000; {
		if time.Now().After(deadline) {
			t.Fatal("the large process stays small")
		}
		time.Sleep(time.Millisecond)
	}
	g := startMemoryGuard(dir)
	if g == nil {
		t.Fatal("no guard")
	}
	defer g.close()
	time.Sleep(2 * guardInterval)
	require.Equal(t, 0, g.count(), "a process was killed although files in the cache only use the memory")
	write("memory.stat", "anon 940000000\nfile 0\nkernel 1000\nshmem 0\n")
	for g.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	write("memory.stat", "anon 1000\n")
	err := large.Wait()
	status, ok := large.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the large process ended with %v", err)
	}
	if syscall.Kill(small.Process.Pid, 0) != nil || g.count() != 1 {
		t.Errorf("%d processes were killed, want 1", g.count())
	}
}

// roleVariable makes TestMemoryGuardInGroup act as a process in the group: as the helper
// with its guard, or as a command that uses memory without end.
const roleVariable = "MINI_TEST_MEMORY_ROLE"

// TestMemoryGuardInGroup: in a group that the kernel kills as a whole, it kills nothing,
// because the guard kills the commands that use up the memory before. Three commands that
// do so at once can be faster than the guard.
func TestMemoryGuardInGroup(t *testing.T) {
	switch os.Getenv(roleVariable) {
	case "helper":
		guardCommands(t)
		return
	case "command":
		useMemory()
	}
	for _, tt := range []struct {
		megabytes, commands int
	}{{256, 1}, {1024, 1}, {2048, 2}} {
		t.Run(fmt.Sprintf("%d MB, %d commands", tt.megabytes, tt.commands), func(t *testing.T) {
			dir := newMemoryGroup(t, tt.megabytes<<20)
			group, err := os.Open(dir)
			require.NoError(t, err)
			defer group.Close()
			cmd := memoryProcess(t, "helper", "DIR="+dir, "COMMANDS="+strconv.Itoa(tt.commands))
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
			if out, err := cmd.CombinedOutput(); err != nil {
				events, _ := os.ReadFile(filepath.Join(dir, "memory.events"))
				t.Errorf("%v: %s\nmemory.events:\n%s", err, out, events)
			}
		})
	}
}

func memoryProcess(t *testing.T, role string, environ ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryGuardInGroup$")
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), environ...)
	return cmd
}

// newMemoryGroup creates a control group with a limit. It skips the test where that is
// not possible.
func newMemoryGroup(t *testing.T, limit int) string {
	t.Helper()
	const root = "/sys/fs/cgroup"
	enabled, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil || !bytes.Contains(enabled, []byte("memory")) {
		t.Skip("the memory controller of cgroup v2 is not enabled below /sys/fs/cgroup")
	}
	dir, err := os.MkdirTemp(root, "mini-test-") //nolint:usetesting // a control group, not a folder
	if err != nil {
		t.Skipf("no right to create a control group: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	for name, value := range map[string]string{"memory.max": strconv.Itoa(limit), "memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil && name != "memory.swap.max" {
			t.Fatal(err)
		}
	}
	return dir
}

// guardCommands starts a guard and, three times, commands that use memory without end,
// beside one that does not. The guard must kill all of the former and not the latter.
func guardCommands(t *testing.T) {
	guard := startMemoryGuard(os.Getenv("DIR"))
	if guard == nil {
		t.Fatal("no guard")
	}
	defer guard.close()
	commands, err := strconv.Atoi(os.Getenv("COMMANDS"))
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	require.NoError(t, other.Start())
	for range 3 {
		running := make([]*exec.Cmd, commands)
		for i := range running {
			running[i] = memoryProcess(t, "command")
			require.NoError(t, running[i].Start())
		}
		for _, cmd := range running {
			assert.ErrorContains(t, cmd.Wait(), "killed", "a command ended")
		}
	}
	if pid, err := syscall.Wait4(other.Process.Pid, nil, syscall.WNOHANG, nil); pid != 0 || guard.count() != 3*commands {
		t.Errorf("killed %d processes, want %d; the other command has ended: %t, %v", guard.count(), 3*commands, pid != 0, err)
	}
	_ = other.Process.Kill()
	_ = other.Wait() // killed
}

// used keeps the memory of useMemory from the garbage collector.
var used [][]byte

// useMemory uses memory as fast as it can.
func useMemory() {
	debug.SetGCPercent(-1)
	for {
		block := make([]byte, 16<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		used = append(used, block)
	}
}

func TestOOMKills(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"cgroup v1":        {"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3},
		"cgroup v2":        {"low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n", 1},
		"none yet":         {"oom_kill 0\n", 0},
		"no counter":       {"oom_kill_disable 0\nunder_oom 0\n", -1},
		"nothing":          {"", -1},
		"not a number":     {"oom_kill many\n", -1},
		"without line end": {"oom_kill 7", 7},
	} {
		assert.Equal(t, c.want, parseOOMKills([]byte(c.text)), "%s", name)
	}
}

func TestOOMFiles(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		want   []string
	}{
		"cgroup v1": {
			"4:cpu,cpuacct:/a\n3:memory:/docker/x\n0::/b\n",
			[]string{"/sys/fs/cgroup/memory/docker/x/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"},
		},
		"cgroup v2":                {"0::/a/b\n", []string{"/sys/fs/cgroup/a/b/memory.events", "/sys/fs/cgroup/memory.events"}},
		"cgroup v2 in a container": {"0::/\n", []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory.events"}},
		"none":                     {"", nil},
	} {
		assert.Equal(t, c.want, oomFiles(c.groups), "%s", name)
	}
}
