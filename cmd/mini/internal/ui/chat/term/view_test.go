package term

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/trajectories"
)

const patch = `diff --git a/src/parser.py b/src/parser.py
index 1111111..2222222 100644
--- a/src/parser.py
+++ b/src/parser.py
@@ -1,4 +1,5 @@
 import sys
+import shlex

 def parse(text):
-    return [t for t in text.split(' ') if t]
+    return shlex.split(text)
`

const thought = "The user wants quotes kept. I should see first how the parser splits its text, and where the tests are."

const reply = "I look at the parser and at its tests first.\n\n- it splits at spaces\n- nothing knows of quotes\n\n```bash\nls src && cat src/parser.py\n```"

// scenes are shown in the golden files.
var scenes = []struct {
	name string
	play func(s *scene)
}{
	{"task", func(s *scene) {
		s.setState(func(st *chat.State) { st.Step, st.Cost, st.Usage.Prompt, st.Usage.Completion = 0, 0, 0, 0 })
		s.ask(chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
		s.keys("Fix the parser: quotes are lost.<alt+enter>Say how you tested it.")
	}},
	{"thinking", func(s *scene) {
		begin(s)
		s.setState(func(st *chat.State) { st.Activity = "thinking" })
		s.now = s.now.Add(7 * time.Second)
		s.show(events.PhaseStarted{Phase: events.PhaseThinking, Step: 1}, events.TextDelta{Step: 1, Thinking: true, Text: strings.Repeat(thought+" ", 8)})
	}},
	{"confirm", func(s *scene) {
		begin(s)
		s.turn(1, thought, reply, "ls src && cat src/parser.py")
		s.ask(chat.Question{
			Kind: chat.AskConfirm, Text: "Run this command?", Command: "ls src && cat src/parser.py",
			Reason: "the rule outside asks: it reads what is not in the workspace",
		})
	}},
	{"running", func(s *scene) {
		begin(s)
		s.turn(1, "", reply, "make test")
		s.setState(func(st *chat.State) { st.Activity = "running"; st.Mode = chat.Yolo })
		s.show(starts("make test"))
		for i := range 90 {
			s.show(events.OutputChunk{Data: fmt.Appendf(nil, "ok   example.org/parser/part%03d   0.%03ds\n", i, i)})
		}
		s.show(events.OutputChunk{Data: []byte("downloading  10%\rdownloading  55%")})
		s.keys("use the vendored module<enter>")
		s.now = s.now.Add(65 * time.Second)
		s.send(tickMsg{})
	}},
	{"slashes", func(s *scene) {
		begin(s)
		s.ask(chat.Question{Kind: chat.AskNextTask, Text: "The work is handed in. What next?", Hint: "a new task, or Enter to end"})
		s.keys("/<tab><tab>")
	}},
	{"end", func(s *scene) {
		begin(s)
		s.run("python -m pytest -q", "...F\n1 failed\n", 1)
		s.show(denies("rm -rf build", "rule", "recursive", "do not delete folders"))
		s.show(chat.Notice{Text: patch, IsDiff: true})
		s.show(events.Recorded{Data: trajectories.Outcome{
			Class: trajectories.Submitted, ExitStatus: "Submitted", Steps: 12, Cost: 0.4321, Start: s.now.Add(-83 * time.Second), End: s.now,
		}})
		s.ask(chat.Question{Kind: chat.AskOther, Text: "Undo all changes?", Answers: []string{"no", "yes"}})
	}},
}

func begin(s *scene) {
	s.ask(chat.Question{Kind: chat.AskTask, Text: "What is to be done?"})
	s.keys("Fix the parser: quotes are lost.<enter>")
	s.show(events.RunStarted{Task: "Fix the parser: quotes are lost.", Model: "claude-sonnet-4-5", Environment: "local", Dir: "/home/ada/project"})
}

// rowsAbove accounts for live lines that the terminal has rewrapped.
func TestReflow(t *testing.T) {
	lines := []string{"", strings.Repeat("─", 79), "short", "❯ " + strings.Repeat("x", 60), "status"}
	lastPage := page{live: lines, x: 62, y: 3, width: 80}
	for _, tt := range []struct {
		width   int
		reflows bool
		rows    int
	}{
		{80, true, 3}, {120, true, 3}, {79, true, 3}, {40, true, 3 + 1 + 1}, {20, true, 3 + 3 + 3}, {20, false, 3}, {0, true, 3},
	} {
		s := screen{reflows: tt.reflows, drawn: lastPage}
		if got := s.rowsAbove(tt.width); got != tt.rows {
			t.Errorf("%d columns, reflows %t: %d rows above the cursor's, want %d", tt.width, tt.reflows, got, tt.rows)
		}
	}
}

// The status line stays at the bottom of the terminal when the live lines become fewer, and finished
// lines fill the space.
func TestMenuCloses(t *testing.T) {
	s := newScene(t, 60, 12)
	for i := range 12 {
		s.show(chat.Notice{Text: fmt.Sprint("note ", i)})
	}
	want := s.terminal.String()
	s.keys("/")
	if screen := s.terminal.String(); strings.Contains(screen, "note 11\n") || !strings.Contains(screen, "/d  /diff") || !strings.Contains(screen, "\n|❯ /█\n|● ready") {
		t.Errorf("the menu is\n%s", screen)
	}
	s.keys("<esc>")
	if screen := s.terminal.String(); strings.Count(screen, "\n|") != 12 || !strings.Contains(screen, "\n|❯ /█\n|● ready") {
		t.Errorf("the screen is\n%s", screen)
	}
	s.keys("<backspace>")
	for i := range 20 {
		s.show(chat.Notice{Text: fmt.Sprint("note ", 12+i)})
	}
	screen := s.terminal.String()
	for i := range 32 {
		if strings.Count(screen, fmt.Sprintf("note %d\n", i)) != 1 {
			t.Errorf("note %d is not there once:\n%s, before\n%s", i, screen, want)
		}
	}
	if strings.Contains(screen, "\n^\n") {
		t.Errorf("there is an empty row:\n%s", screen)
	}
}

// The golden files show the scrollback and the screen at several sizes.
func TestGolden(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {160, 50}, {40, 12}, {20, 8}} {
		var b strings.Builder
		for _, tt := range scenes {
			s := newScene(t, size[0], size[1])
			tt.play(s)
			fmt.Fprintf(&b, "== %s ==\n%s\n", tt.name, s.terminal)
		}
		golden(t, fmt.Sprintf("screen_%dx%d.txt", size[0], size[1]), b.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update rewrites it:\n%s", name, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	}
}
