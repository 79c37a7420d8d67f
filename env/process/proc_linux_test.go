package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	if err := os.Symlink(sleep, link); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), link, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a killed process exited with status 0")
	}
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
			if got := c.isAlive(); got != c.want {
				t.Errorf("alive is %v, want %v", got, c.want)
			}
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
			if got := protected.contains(tab)(c.table[len(c.table)-1]); got != c.want {
				t.Errorf("protects is %v, want %v", got, c.want)
			}
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
	if got := tab.descendantsOf(1); len(got) != 0 {
		t.Errorf("descendants are %v", got)
	}
}

func TestMergeAndFindShell(t *testing.T) {
	got := MergeEnv([]string{"A=1", "B=2", "A=3", "C=4"}, map[string]string{"B": "5", "D": "6=7"})
	if diff := cmp.Diff([]string{"A=3", "C=4", "B=5", "D=6=7"}, got); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
	dir := t.TempDir()
	for _, name := range []string{"bash", "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
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
