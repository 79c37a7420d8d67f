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
)

// TestMemoryGuard: near the limit of a group whose processes the kernel would all kill,
// the guard kills the largest process, and no other.
func TestMemoryGuard(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		temporary := filepath.Join(dir, "new")
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
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
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
	if g.count() != 0 {
		t.Fatal("a process was killed although files in the cache only use the memory")
	}
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		running := make([]*exec.Cmd, commands)
		for i := range running {
			running[i] = memoryProcess(t, "command")
			if err := running[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		for _, cmd := range running {
			if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
				t.Errorf("a command ended with %v", err)
			}
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
