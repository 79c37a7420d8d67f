package prompt_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/minibench/mini/cmd/mini/internal/ptytest"
)

// pty is a terminal with this test program on it as a child.
type pty struct {
	*ptytest.Terminal
	T   *testing.T
	cmd *exec.Cmd
}

func onTerminal(t *testing.T, part string, env ...string) *pty {
	t.Helper()
	p := &pty{Terminal: ptytest.Open(t, 80, 24), T: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), append(env, childEnv+"="+part)...)
	p.Start(p.cmd)
	if err := p.Line.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

// mode is how the terminal takes keys: "line" as at the start, or "raw".
func (p *pty) mode() string {
	line := p.Mode()
	const flags = unix.ICANON | unix.ECHO | unix.ISIG
	switch {
	case line.Lflag&flags == flags && line.Oflag&unix.OPOST != 0:
		return "line"
	case line.Lflag&flags == 0:
		return "raw"
	}
	return fmt.Sprintf("%#o", line.Lflag)
}

const (
	pasteBegins, pasteEnds = "\x1b[200~", "\x1b[201~"
	upKey, leftKey         = "\x1b[A", "\x1b[D"
)

// What a person types, and what is made of it.
func TestTyping(t *testing.T) {
	tests := []struct{ name, part, keys, want string }{
		{"a line", "line", "hello\r", `5 "hello" <nil>`},
		{"nothing", "line", "\r", `0 "" <nil>`},
		{"UTF-8, wide, and joined", "line", "žluť 日本 e\u0301\r", "17 \"žluť 日本 e\u0301\" <nil>"},
		{"a wide one taken back", "line", "日本\x7f語\r", `6 "日語" <nil>`},
		{"edited in the middle", "line", "ac" + leftKey + "b\r", `3 "abc" <nil>`},
		{"words", "line", "one two three\x17\x1bb\x0bx\x01y \x05z\r", `8 "y one xz" <nil>`},
		{"removed", "line", "abc\x01\x1b[3~\x04d\r", `2 "dc" <nil>`},
		{"all removed", "line", "abc\x15x\r", `1 "x" <nil>`},
		{"Ctrl-C", "line", "abc\x03", `0 "" interrupted`},
		{"Ctrl-D", "line", "\x04", `0 "" EOF`},
		{"Ctrl-D with a text", "line", "abc\x04\r", `3 "abc" <nil>`},
		{"a backslash at the end", "line", "one\\\rtwo\\\\\r", `9 "one\ntwo\\\\" <nil>`},
		{"back over a line end", "line", "one\\\r\x7fx\r", `4 "onex" <nil>`},
		{"Alt and Enter", "line", "one\x1b\rtwo\r", `7 "one\ntwo" <nil>`},
		{"lines pasted", "line", pasteBegins + "one\r\ntwo\rthree\n" + pasteEnds + "four\r", `18 "one\ntwo\nthree\nfour" <nil>`},
		{"a paste with keys in it", "line", pasteBegins + "a\x03b\x04\x1b[A\ty\r" + pasteEnds + "\x7f\r", `9 "a\x03b\x04\x1b[A\ty" <nil>`},
		{"unknown keys", "line", "a\x1b[24~\x1bOP\x1b[1;2R\x1bx\x00b\r", `2 "ab" <nil>`},
		{"bytes that are no UTF-8", "line", "caf\xe9 \xff\r", `10 "caf� �" <nil>`},
		{"a command completed", "line", "/y\tall\r", `9 "/yolo all" <nil>`},
		{"a command completed as far as it goes", "line", "/d\tf\t\r", `6 "/diff " <nil>`},
		{"a tab", "line", "a\tb\r", `3 "a\tb" <nil>`},
		{"no past", "line", upKey + "x\r", `1 "x" <nil>`},
		{"a text", "text", "one\rtwo\r\rthree\x1b\r", `14 "one\ntwo\n\nthree" <nil>`},
		{"a text, ended by Ctrl-D", "text", "one\rtwo\x04", `7 "one\ntwo" <nil>`},
		{"a text, left", "text", "one\rtwo\x03", `0 "" interrupted`},
		{"a text with a backslash", "text", "one\\\rtwo\x04", `8 "one\\\ntwo" <nil>`},
		{"a secret", "secret", "sk-12\x7f3\r", `5 "sk-13" <nil>`},
		{"a secret pasted", "secret", pasteBegins + "sk-1\n" + pasteEnds + "\r", `4 "sk-1" <nil>`},
		{"a secret left", "secret", "sk-1\x03", `0 "" interrupted`},
		{"a dumb terminal", "dumb", "日本\x7f語\n", `6 "日語" <nil>`},
		{"a dumb terminal, goes on", "dumb", "one\\\ntwo\n", `7 "one\ntwo" <nil>`},
		{"a dumb terminal, Ctrl-D", "dumb", "\x04", `0 "" EOF`},
		{"a dumb terminal, a text", "dumb text", "one\ntwo\n\x04", `7 "one\ntwo" <nil>`},
		{"a dumb terminal, a text ended by Esc", "dumb text", "one\ntwo\x1b\n", `7 "one\ntwo" <nil>`},
		{"a dumb terminal, a secret", "dumb secret", "sk-1\r", `4 "sk-1" <nil>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := onTerminal(t, tt.part)
			before := p.Expect(": ")
			wait(t, p, tt.part)
			p.Type(tt.keys)
			shown := p.Expect("GOT " + tt.want + ".")
			if got := p.mode(); !strings.HasSuffix(tt.want, "EOF") && got != "line" && got != "raw" {
				t.Errorf("the terminal is left in mode %s", got)
			}
			if strings.HasPrefix(tt.part, "dumb") && strings.Contains(before+shown, "\x1b[") {
				t.Errorf("a dumb terminal got %q", before+shown)
			}
			if strings.Contains(tt.part, "secret") && strings.Contains(shown, "sk") {
				t.Errorf("the secret is shown: %q", shown)
			}
			if strings.Contains(tt.keys, pasteBegins) && tt.part == "line" && !strings.HasSuffix(shown, "\x1b[?2004l\r\n") {
				t.Errorf("pastes are still marked: %q", shown)
			}
		})
	}
}

// wait waits for a prompt to take keys: it prints before it reads.
func wait(t *testing.T, p *pty, part string) {
	t.Helper()
	want := "raw"
	if strings.HasPrefix(part, "dumb") && part != "dumb secret" {
		want = "line"
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	end := time.After(ptytest.Deadline)
	for p.mode() != want {
		select {
		case <-poll.C:
		case <-end:
			t.Fatalf("the terminal is in mode %s", p.mode())
		}
	}
}

// A paste of 10 kB in 200 lines is one input, and so is a line as long.
func TestLongPaste(t *testing.T) {
	p := onTerminal(t, "line")
	for _, text := range []string{strings.Repeat(strings.Repeat("x", 49)+"\n", 200), strings.Repeat("y", 10_000)} {
		p.Expect("line: ")
		wait(t, p, "line")
		typed := make(chan error, 1) // more than a terminal takes before it is read
		go func() {
			_, err := p.Master.WriteString(pasteBegins + text + pasteEnds + "\r")
			typed <- err
		}()
		p.Expect(fmt.Sprintf("GOT %d ", len(text)))
		p.Expect("<nil>.")
		if err := <-typed; err != nil {
			t.Fatal(err)
		}
	}
}

// A question that is given up takes no key of the next one, and the terminal is
// as it was in between.
func TestCancelled(t *testing.T) {
	for _, part := range []string{"line", "dumb", "secret", "text"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			p := onTerminal(t, part)
			for range 3 {
				p.Expect(": ")
				wait(t, p, part)
				if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
					t.Fatal(err)
				}
				p.Expect(`GOT 0 "" context canceled.`)
			}
			p.Expect(": ")
			wait(t, p, part)
			if part == "text" {
				p.Type("kept\x04")
			} else {
				p.Type("kept\n")
			}
			p.Expect(`GOT 4 "kept" <nil>.`)
		})
	}
}

// However it ends, the terminal is as it was.
func TestTerminalIsGivenBack(t *testing.T) {
	p := onTerminal(t, "line")
	p.Expect("line: ")
	wait(t, p, "line")
	p.Type("\x04")
	p.Expect("EOF.")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err, p.Output.String())
	}
	if got := p.mode(); got != "line" {
		t.Errorf("the terminal is left in mode %s", got)
	}
}

// Ctrl-Z stops the program with the terminal as it was; afterwards the line is
// there again.
func TestSuspended(t *testing.T) {
	p := onTerminal(t, "line")
	p.Expect("line: ")
	wait(t, p, "line")
	p.Type("half\x1a")
	p.Expect("\x1b[?2004l")
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	if got := p.mode(); got != "line" {
		t.Errorf("the terminal is in mode %s meanwhile", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	p.Expect("line: half")
	wait(t, p, "line")
	p.Type("way\r")
	p.Expect(`GOT 7 "halfway" <nil>.`)
}

// A terminal that is closed ends the input.
func TestHangUp(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	p := onTerminal(t, "line", "PROMPT_RESULT="+result)
	p.Expect("line: ")
	wait(t, p, "line")
	p.Type("half")
	p.Expect("half")
	if err := p.Master.Close(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it cannot say anything any more
	if text, err := os.ReadFile(result); err != nil || string(text) != "EOF" {
		t.Errorf("%v, the error is %q", err, text)
	}
}

// A row holds what the terminal has room for, at every width, and the cursor is
// in it.
func TestResized(t *testing.T) {
	p := onTerminal(t, "line")
	p.Expect("line: ")
	wait(t, p, "line")
	p.Type(strings.Repeat("日", 60))
	p.Expect(strings.Repeat("日", 36) + "\x1b[K\r\x1b[78C")
	p.Resize(40, 24)
	p.Type("x")
	p.Expect("\r" + "line: " + strings.Repeat("日", 16) + "x\x1b[K\r\x1b[39C")
	p.Type("\r")
	p.Expect("GOT 181 ")
}

// What was typed is remembered by the next session, but for secrets.
func TestHistoryOfTyping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state/history")
	env := "PROMPT_HISTORY=" + path
	p := onTerminal(t, "line", env)
	for _, keys := range []string{"first\r", pasteBegins + "two\nlines" + pasteEnds + "\r"} {
		p.Expect("line: ")
		wait(t, p, "line")
		p.Type(keys)
		p.Expect("<nil>.")
	}
	for _, part := range []string{"secret", "dumb secret"} {
		p = onTerminal(t, part, env)
		p.Expect("key: ")
		wait(t, p, part)
		p.Type("sk-secret\r")
		p.Expect("<nil>.")
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "\"first\"\n\"two\\nlines\"\n" {
		t.Errorf("%v, %q", err, text)
	}
	p = onTerminal(t, "line", env)
	for keys, want := range map[string]string{
		"x" + upKey + upKey + upKey + "!\r": `GOT 6 "first!" <nil>.`,
	} {
		p.Expect("line: ")
		wait(t, p, "line")
		p.Type(keys)
		p.Expect(want)
	}
	p.Expect("line: ")
	wait(t, p, "line")
	p.Type("own" + upKey + upKey + "\x0e\x0e\r")
	p.Expect(`GOT 3 "own" <nil>.`)
}
