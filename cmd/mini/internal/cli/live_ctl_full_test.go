//go:build full

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The keys of the live view control the batch on a real terminal. mini ctl shows their
// effects, and the view shows the effects of mini ctl.
func TestLiveKeysAndCtl(t *testing.T) {
	t.Parallel()
	dir := batchFolder(t)
	s := newScreen(t, dir)
	s.typeLine(liveBatch)
	s.until("while it runs", "1/3", "  名前-7", "running", "Ctrl-C stops", "p pause", "disk ")
	s.tmux("send-keys", "p")
	s.until("after p", "paused: p resumes", "paused: running attempts continue, no new ones start (live view)")
	if out := ctl(t, dir, "run"); !strings.Contains(out, "run: paused, 2 running") || !strings.Contains(out, "名前-7") {
		t.Errorf("mini ctl says\n%s", out)
	}
	// Either of the two workers may have taken a.
	s.tmux("send-keys", "j")
	s.until("after j", "▸1  ", "f follow")
	selected := "▸1  a"
	if !strings.Contains(s.tmux("capture-pane", "-p"), selected) {
		selected = "▸2  a"
		s.tmux("send-keys", "j")
	}
	s.until("after j", selected)
	s.tmux("send-keys", "f")
	s.until("the pane", " a · attempt 1", "running", " step 1 ·", "$ until [ -e", "Esc back")
	s.tmux("send-keys", "K")
	s.until("after K", " kill a? [y/N]   y kills it")
	s.tmux("send-keys", "n")
	s.until("after n", "not killed")
	s.tmux("send-keys", "C-z")
	s.waitViewClosed("after Ctrl-Z")
	s.typeLine("fg")
	s.until("after fg", " a · attempt 1", "$ until [ -e")
	s.tmux("resize-window", "-x", "100", "-y", "20")
	s.tmux("send-keys", "K", "y")
	s.until("after K y", " a · attempt 1", "not running", " end ·", "outcome: interrupted", "killed (live view)")
	s.tmux("send-keys", "Escape")
	s.until("after Esc", "is killed: its attempt ends, and its work is kept (live view)", "paused: p resumes", "2/3")
	if out := ctl(t, dir, "run", "requeue", "a"); !strings.Contains(out, "a is requeued; its earlier attempts are kept") {
		t.Errorf("mini ctl says %s", out)
	}
	s.until("what mini ctl does", "is requeued; its earlier attempts are kept (mini ctl)", "1/3")
	s.tmux("send-keys", "p")
	s.until("after p again", "resumed (live view)", selected)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.checkRestored("at the end", "2 of 3", "7 in 4 attempts")
	if _, err := os.Stat(filepath.Join(dir, "run", "a", "attempts", "2", "journal.jsonl")); err != nil {
		t.Error(err)
	}
}

// ctl runs mini ctl in a folder.
func ctl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "mini", append([]string{"ctl"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("mini ctl %v: %v: %s", args, err, out)
	}
	return string(out)
}
