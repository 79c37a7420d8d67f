//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/trajectories"
)

// The bars of mini inspect, and what it is of.
const (
	inspectOpen     = 1.0 // seconds until the list is seen, at most
	inspectResident = 200 // MB, at most
	inspectKey      = 0.2 // seconds until a key is answered, at most

	inspectRuns  = 500
	inspectBytes = 5 << 20 // of each journal
)

// inspect measures mini inspect on a run of many long attempts, on a terminal of
// its own: until the list is there, until an attempt is read, and what it holds.
func (b *bench) inspect(context.Context) error {
	b.title("inspect: %d attempts of %d MB", inspectRuns, inspectBytes>>20)
	run := filepath.Join(b.tmp, "long")
	if err := longRun(run); err != nil {
		return err
	}
	t, err := onTerminal(b.mini, "inspect", run)
	if err != nil {
		return err
	}
	defer t.close()
	if err := t.expect("owner__long-40", "500 trajectories"); err != nil {
		return err
	}
	b.atMost("until the list is seen", t.took.Seconds(), inspectOpen, "s")
	for _, key := range []struct {
		name, keys string
		bar        float64
	}{
		{"until an attempt is read", "\r", inspectOpen},
		{"a step on, with an output of 3 MB", "l", inspectKey},
		{"to the end of that output", "G", inspectKey},
		{"to the end of the attempt", "$", inspectKey},
		{"back to the list", "\x1b", inspectKey},
		{"down a screen", " ", inspectKey},
	} {
		quiet := settled
		if key.bar == inspectOpen {
			quiet = 3 * time.Second // it says that it reads, and then reads
		}
		if err := t.press(key.keys, quiet); err != nil {
			return fmt.Errorf("%s: %w", key.name, err)
		}
		b.atMost(key.name, t.took.Seconds(), key.bar, "s")
	}
	b.atMost("resident at most", float64(t.resident())/1e3, inspectResident, "MB")
	if err := t.press("/a needle that is in none\r", time.Second); err != nil {
		return err
	}
	took := t.took.Seconds()
	b.row("search of all, for what is in none", took, "s", fmt.Sprintf("%.0f MB/s", inspectRuns*inspectBytes/1e6/took))
	b.atMost("resident at most, after that", float64(t.resident())/1e3, inspectResident, "MB")
	return nil
}

// settled is how long a terminal is quiet when a key was answered.
const settled = 500 * time.Millisecond

// longRun makes up the folder of a run. The journals are copies of one, whose
// blocks they share where the file system can do that; the others are links to it:
// what is measured is reading.
func longRun(run string) error {
	first := filepath.Join(run, "owner__long-0", "attempts", "1")
	if err := os.MkdirAll(first, 0o755); err != nil { //nolint:gosec // goes with the run
		return err
	}
	journal := filepath.Join(first, "journal.jsonl")
	if err := longJournal(journal); err != nil {
		return err
	}
	results := map[string]any{}
	for n := range inspectRuns {
		id := "owner__long-" + strconv.Itoa(n)
		results[id] = map[string]any{"class": "submitted", "exit_status": "Submitted", "attempt": 1, "steps": 50, "cost": 0.5, "patch_bytes": 100}
		if n == 0 {
			continue
		}
		dir := filepath.Join(run, id, "attempts", "1")
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as above
			return err
		}
		if err := os.Link(journal, filepath.Join(dir, "journal.jsonl")); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"format": trajectories.Format, "instances": results})
	if err != nil {
		return err
	}
	manifest := []byte(`{"format":"` + trajectories.Format + `","sessions":[]}`)
	return errors.Join(os.WriteFile(filepath.Join(run, "results.json"), data, 0o600), os.WriteFile(filepath.Join(run, "run.json"), manifest, 0o600))
}

// longJournal is an attempt of 50 steps, one of which printed most of it.
func longJournal(path string) error {
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "owner__long-0", Attempt: 1, ModelName: "synthetic"})
	if err != nil {
		return err
	}
	var failed error
	add := func(t trajectories.Type, data any) {
		if _, err := j.Append(t, data); failed == nil {
			failed = err
		}
	}
	say := func(c trajectories.Cause, role, text string, actions ...string) {
		m := trajectories.Message{Cause: c, Actions: actions}
		m.Role, m.Content = "user", text
		if role != "" {
			m.Role = "assistant"
		}
		add(trajectories.TypeMessage, m)
	}
	say(trajectories.CausePrompt, "", "fix it")
	for n := range 50 {
		size := 20 << 10
		if n == 0 {
			size = inspectBytes - 50*size*2
		}
		text := strings.Repeat("some \x1b[31mred\x1b[0m line of output\twith a few words in it\n", size/60)
		add(trajectories.TypeCall, trajectories.Call{Cost: 0.01, Tries: 1})
		say(trajectories.CauseReply, "assistant", "I look.", "make test")
		add(trajectories.TypeExecution, trajectories.Execution{Command: "make test", Output: trajectories.Bytes(text), Bytes: int64(len(text))})
		say(trajectories.CauseObservation, "", "<output>"+text[:min(len(text), 10_000)]+"</output>")
	}
	add(trajectories.TypeOutcome, trajectories.Outcome{Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 50, Submission: trajectories.Bytes("diff --git a/x b/x\n")})
	return errors.Join(failed, j.Close())
}

// terminal is a program on a pseudo-terminal, seen from the other side.
type terminal struct {
	master *os.File
	cmd    *exec.Cmd
	output []byte
	start  time.Time
	took   time.Duration // of what was waited for last
	peak   int64         // kB, as it was asked last
}

func onTerminal(name string, args ...string) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	var number uint32
	var inner error
	err = raw.Control(func(fd uintptr) { // Fd would make it blocking
		number, inner = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		inner = errors.Join(inner, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 160}))
	})
	if err = errors.Join(err, inner); err != nil {
		return nil, errors.Join(fmt.Errorf("open a terminal: %w", err), master.Close())
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errors.Join(err, master.Close())
	}
	defer line.Close() //nolint:errcheck // it is the program's
	t := &terminal{master: master, start: time.Now()}
	t.cmd = exec.Command(name, args...) //nolint:gosec,noctx // the program is the user's choice; close ends it
	t.cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = line, line, line
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return t, t.cmd.Start()
}

// press waits until nothing more comes for a while; took is until the last of it.
func (t *terminal) press(keys string, quiet time.Duration) error {
	t.start = time.Now()
	if _, err := t.master.WriteString(keys); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	t.took = 0
	for {
		if err := t.master.SetReadDeadline(time.Now().Add(quiet)); err != nil {
			return err
		}
		n, err := t.master.Read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && t.took == 0:
			return fmt.Errorf("%q was not answered", keys)
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.resident()
			return nil
		case err != nil:
			return err
		}
		if n > 0 {
			t.took = time.Since(t.start)
		}
	}
}

// expect reads until all of these were shown.
func (t *terminal) expect(want ...string) error {
	buf := make([]byte, 64<<10)
	if err := t.master.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	limit := time.AfterFunc(time.Minute, func() { _ = t.cmd.Process.Kill() })
	defer limit.Stop()
	for {
		missing := ""
		for _, w := range want {
			if !bytes.Contains(t.output, []byte(w)) {
				missing = w
			}
		}
		if missing == "" {
			t.took = time.Since(t.start)
			t.resident()
			return nil
		}
		n, err := t.master.Read(buf)
		if err != nil {
			return fmt.Errorf("no %q: %w", missing, err)
		}
		t.output = append(t.output, buf[:n]...)
	}
}

// resident is the most that the program has held so far, in kB.
func (t *terminal) resident() int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.cmd.Process.Pid)) // it may have ended
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		fields := strings.Fields(after)
		if kb, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			t.peak = kb
		}
	}
	return t.peak
}

func (t *terminal) close() {
	_ = t.cmd.Process.Kill()
	_ = t.cmd.Wait()
	_ = t.master.Close()
}
