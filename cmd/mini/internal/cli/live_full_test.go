//go:build full

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// screen is a tmux terminal that runs a shell.
type screen struct {
	t      *testing.T
	socket string
	dir    string
}

// newScreen starts a shell in dir on a screen of 80x24. Without tmux it skips the test,
// or fails if MINI_REQUIRE_DOCKER=1 is set.
func newScreen(t *testing.T, dir string) *screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("MINI_REQUIRE_DOCKER") == "1" {
			t.Fatalf("tmux is required: %v", err)
		}
		t.Skipf("tmux is not installed: %v", err)
	}
	s := &screen{t: t, socket: filepath.Join(dir, "tmux"), dir: dir}
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir,
		"env -u CI -u NO_COLOR -u BASH_ENV -u ENV PS1='ready$ ' HOME="+dir+" sh")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() })
	s.until("a prompt", "ready$")
	return s
}

func (s *screen) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// until waits until the screen, including the lines that have scrolled off its upper
// end, contains all texts.
func (s *screen) until(description string, texts ...string) {
	s.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(3 * time.Minute)
	for {
		shown, missing := s.tmux("capture-pane", "-p", "-S", "-200"), ""
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-poll.C:
		case <-timeout:
			s.t.Fatalf("%s: no %q on the screen:\n%s", description, missing, shown)
		}
	}
}

// typeLine types a command and Enter.
func (s *screen) typeLine(command string) {
	s.t.Helper()
	s.tmux("send-keys", "-l", command)
	s.tmux("send-keys", "Enter")
}

// waitViewClosed waits until the terminal has left the alternate screen and belongs to the
// shell.
func (s *screen) waitViewClosed(description string) {
	s.t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	timeout := time.After(3 * time.Minute)
	for strings.TrimSpace(s.tmux("display", "-p", "#{alternate_on} #{pane_current_command}")) != "0 sh" {
		select {
		case <-poll.C:
		case <-timeout:
			s.t.Fatalf("%s: the view has the screen", description)
		}
	}
}

// checkRestored checks the terminal after mini: it shows the normal screen with its
// earlier text and a cursor, and line editing and echo are on.
func (s *screen) checkRestored(description string, texts ...string) {
	s.t.Helper()
	s.until(description, append(texts, "mini bench --subset", "ready$")...)
	if got := strings.TrimSpace(s.tmux("display", "-p", "alternate #{alternate_on} cursor #{cursor_flag}")); got != "alternate 0 cursor 1" {
		s.t.Errorf("%s: %s", description, got)
	}
	s.typeLine(`clear; echo modes: $(stty -a | tr -s ' ;' '\n' | grep -x -e icanon -e echo -e opost -e isig | sort)`)
	s.until(description, "modes: echo icanon isig opost")
}

// batchFolder returns a folder with a batch of three instances. Two wait for a file
// "go", and one fails at once.
func batchFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rows.jsonl": `{"instance_id":"a","problem_statement":"p"}
{"instance_id":"b","problem_statement":"p"}
{"instance_id":"名前-7","problem_statement":"p"}
`,
		"replies.yaml": fmt.Sprintf(`"*":
  - |
    `+"```"+`bash
    until [ -e %s/go ]; do sleep 0.05; done
    `+"```"+`
  - |
    `+"```"+`bash
    echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT
    `+"```"+`
b:
  - |
    `+"```"+`bash
    true
    `+"```"+`
`, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const liveBatch = "mini bench --subset rows.jsonl --environment-class local --model-class scripted -c model.replies=replies.yaml -c environment.timeout=600 -o run -w 2; echo code $?"

// The live view shows the batch on a real terminal, and restores the terminal however
// the batch ends.
func TestLiveOnATerminal(t *testing.T) {
	t.Parallel()
	t.Run("end", func(t *testing.T) {
		t.Parallel()
		dir := batchFolder(t)
		s := newScreen(t, dir)
		s.typeLine(liveBatch)
		s.until("while it runs", "mini bench · rows.jsonl · scripted", "1/3", "1 provider",
			"  a       ", "  名前-7", "running", "until [ -e", "ScriptExhausted", "Ctrl-C stops")
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.checkRestored("at the end", "[1/3] b", "FAIL  ScriptExhausted", "2 of 3", "code 3")
	})
	t.Run("ctrl-c", func(t *testing.T) {
		t.Parallel()
		s := newScreen(t, batchFolder(t))
		s.typeLine(liveBatch)
		s.until("while it runs", "1/3", "running", "Ctrl-C stops")
		s.tmux("send-keys", "q")
		s.until("q does not quit", "q does not end the run")
		s.tmux("send-keys", "C-c")
		s.checkRestored("after Ctrl-C", "mini: stopping", "Interrupted; to continue:", "code 130")
	})
	t.Run("ctrl-c twice", func(t *testing.T) {
		t.Parallel()
		s := newScreen(t, batchFolder(t))
		s.typeLine(liveBatch)
		s.until("while it runs", "1/3", "running", "Ctrl-C stops")
		s.tmux("send-keys", "C-c", "C-c")
		s.checkRestored("after Ctrl-C twice", "mini: stopping", "code 130")
	})
	t.Run("ctrl-z", func(t *testing.T) {
		t.Parallel()
		dir := batchFolder(t)
		s := newScreen(t, dir)
		s.typeLine("set -m")
		s.typeLine(liveBatch)
		s.until("while it runs", "1/3", "running", "Ctrl-C stops")
		s.tmux("send-keys", "C-z")
		s.checkRestored("while it is stopped", "Stopped")
		s.typeLine("fg")
		s.until("after fg", "1/3", "running", "Ctrl-C stops")
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.until("at the end", "2 of 3", "ready$")
	})
	t.Run("background", func(t *testing.T) {
		t.Parallel()
		dir := batchFolder(t)
		s := newScreen(t, dir)
		s.typeLine("set -m")
		s.typeLine(strings.TrimSuffix(liveBatch, "; echo code $?"))
		s.until("while it runs", "1/3", "running", "Ctrl-C stops")
		s.tmux("send-keys", "C-z")
		s.until("while it is stopped", "Stopped")
		s.typeLine("bg")
		s.until("after bg", "FAIL  ScriptExhausted", "mini: running in the background", "ready$")
		s.typeLine("clear; jobs")
		s.until("it runs", "Running")
		s.typeLine("fg")
		s.until("after fg", "1/3", "running", "Ctrl-C stops")
		s.tmux("send-keys", "C-z")
		s.waitViewClosed("when it is stopped again")
		s.typeLine("bg; echo again")
		s.until("after bg again", "\nagain")
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.until("at the end, with nobody at the terminal", "[2/3] ", "[3/3] ", "2 of 3 instances have a result")
		s.typeLine("wait; jobs; echo over")
		s.checkRestored("at the end", "over")
	})
}
