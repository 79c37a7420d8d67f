package tui

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
	"github.com/minibench/mini/cmd/mini/internal/screen"
)

const (
	enter  = ansi.SetModeAltScreenSaveCursor
	leave  = ansi.ResetModeAltScreenSaveCursor
	cursor = ansi.SetModeTextCursorEnable
)

// shown waits for a view that is complete, its last line included.
func shown(p *pty) {
	p.T.Helper()
	p.Expect(enter)
	p.Expect("mini bench")
	p.Expect("Ctrl-C stops")
	if p.Odd() == "" {
		p.T.Error("the terminal is not in raw mode: keys would be shown")
	}
}

// restored waits for the normal screen, and looks at the terminal's line.
func restored(p *pty) {
	p.T.Helper()
	p.Expect(leave)
	p.Expect(cursor)
	ptytest.Eventually(p.T, "a sane terminal, without: "+p.Odd(), func() bool { return p.Odd() == "" })
}

func TestGivenBackAtTheEnd(t *testing.T) {
	p := onTerminal(t, "end")
	shown(p)
	p.Resize(60, 16)
	if err := p.cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	p.Expect("Ctrl-C stops") // drawn anew for the new size
	p.Type("\x03")
	restored(p)
	p.Expect("given back\r\n")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, p.Output.String())
	}
}

func TestGivenBackAfterAPanic(t *testing.T) {
	p := onTerminal(t, "panic")
	shown(p)
	p.Type("\x03")
	restored(p)
	p.Expect("a mistake in the view")
	if said := p.Expect("experienced a panic") + p.Expect("\n"); strings.Contains(said, enter) {
		t.Errorf("the view came back: %q", said)
	}
}

// What kills this process leaves the screen to the guard, which prints what a
// crash has to say where it can be read.
func TestGivenBackByTheGuard(t *testing.T) {
	for name, tt := range map[string]struct {
		part string
		kill syscall.Signal // or Ctrl-C where it is 0
		says string
	}{
		"kill -9": {"hang", syscall.SIGKILL, ""},
		"abort":   {"hang", syscall.SIGABRT, "SIGABRT"},
		"crash":   {"crash", 0, "panic: a mistake elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			p := onTerminal(t, tt.part)
			shown(p)
			guard := guardOf(t, p.cmd.Process.Pid)
			if tt.kill == 0 {
				p.Type("\x03")
			} else if err := p.cmd.Process.Signal(tt.kill); err != nil {
				t.Fatal(err)
			}
			restored(p)
			if tt.says != "" {
				p.Expect(tt.says)
				p.Expect("goroutine ")
			}
			p.Expect("mini was killed or has crashed")
			p.guardGone(guard)
		})
	}
}

// A guard must not hear of the keys, and must not keep mini from ending where
// it was killed itself.
func TestGuardIsAlone(t *testing.T) {
	p := onTerminal(t, "end")
	shown(p)
	guard := guardOf(t, p.cmd.Process.Pid)
	group, err := syscall.Getpgid(guard)
	if err != nil || group != guard {
		t.Errorf("the guard %d is in group %d: %v", guard, group, err)
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGTSTP} {
		if err := syscall.Kill(guard, s); err != nil {
			t.Fatal(err)
		}
	}
	if got := guardOf(t, p.cmd.Process.Pid); got != guard {
		t.Errorf("a signal ended the guard")
	}
	if err := syscall.Kill(guard, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Type("\x03")
	restored(p)
	p.Expect("given back\r\n")
}

// When the terminal goes away, the view ends and the process goes on.
func TestTerminalGone(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	p := onTerminal(t, "gone", "MINI_TUI_RESULT="+result)
	shown(p)
	guard := guardOf(t, p.cmd.Process.Pid)
	_, _ = p.Line.Close(), p.Master.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(result); err != nil || !strings.HasPrefix(string(said), "live view: ") {
		t.Errorf("the view ended with %q, %v", said, err)
	}
	p.guardGone(guard)
}

// guardOf is the guard of a process: its only child.
func guardOf(t testing.TB, pid int) int {
	t.Helper()
	found := 0
	ptytest.Eventually(t, "a guard", func() bool {
		lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
		for _, list := range lists {
			data, _ := os.ReadFile(list)
			if fields := strings.Fields(string(data)); len(fields) > 0 {
				found, _ = strconv.Atoi(fields[0])
			}
		}
		if found == 0 {
			return false
		}
		// Only once it is the guard does it ignore what it is to ignore.
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(found) + "/cmdline")
		status, _ := os.ReadFile("/proc/" + strconv.Itoa(found) + "/status")
		return strings.Contains(string(args), screen.GuardCommand) && ignores(string(status), syscall.SIGTERM)
	})
	return found
}

func ignores(status string, s syscall.Signal) bool {
	_, after, _ := strings.Cut(status, "SigIgn:")
	mask, err := strconv.ParseUint(strings.TrimSpace(strings.Split(after, "\n")[0]), 16, 64)
	return err == nil && mask&(1<<(s-1)) != 0
}

// guardGone waits for the guard's end, and takes what it still has to say.
func (p *pty) guardGone(pid int) {
	p.T.Helper()
	ptytest.Eventually(p.T, "the guard's end", func() bool {
		_ = p.Master.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = p.Master.Read(make([]byte, 64<<10))
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		_, after, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(after, "Z") // nobody may have collected it
	})
}

// BenchmarkView measures what a view of 64 workers costs beyond the events
// themselves, in percent of one core.
func BenchmarkView(b *testing.B) {
	const seconds, events = 10, 3000
	for b.Loop() {
		with, without := cost(b, seconds, events, "1"), cost(b, seconds, events, "")
		b.ReportMetric(100*(with-without)/seconds, "%core")
		b.ReportMetric(100*with/seconds, "%core-all")
		b.ReportMetric(0, "ns/op")
	}
}

// TestViewIsCheap is the same for a moment, with a bar that only a mistake
// misses.
func TestViewIsCheap(t *testing.T) {
	if testing.Short() || raced {
		t.Skip("times are measured without the race detector only")
	}
	const seconds = 2
	if with, without := cost(t, seconds, 3000, "1"), cost(t, seconds, 3000, ""); (with-without)/seconds > 0.10 {
		t.Errorf("%.2f s of %d s are spent with a view, and %.2f s without", with, seconds, without)
	}
}

// cost is the processor time in seconds that a child takes.
func cost(t testing.TB, seconds, events int, view string) float64 {
	t.Helper()
	result := filepath.Join(t.TempDir(), "cost")
	p := onTerminal(t, "load", "MINI_TUI_VIEW="+view, "MINI_TUI_RESULT="+result,
		"MINI_TUI_SECONDS="+strconv.Itoa(seconds), "MINI_TUI_EVENTS="+strconv.Itoa(events))
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	if err := p.drain(ended); err != nil {
		t.Fatalf("%v: %s", err, p.Output.String())
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	took, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return took
}
