package term

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/trajectories"
)

var confirm = chat.Question{Kind: chat.AskConfirm, Text: "Run it?", Command: "ls"}

func TestKeysAtQuestion(t *testing.T) {
	task := chat.Question{Kind: chat.AskTask, Text: "What?"}
	multiline := chat.Question{Kind: chat.AskMessage, Text: "What?", Multiline: true}
	keep := chat.Question{Kind: chat.AskOther, Text: "Keep?", Answers: []string{"keep", "undo"}}
	secret := chat.Question{Kind: chat.AskOther, Text: "Key?", Secret: true}
	for _, tt := range []struct {
		name, keys string
		q          chat.Question
		answer     string
	}{
		{"Enter is yes", "<enter>", confirm, "= "},
		{"a text is no", "not this<enter>", confirm, "= not this"},
		{"a slash command", "/y<enter>", confirm, "= /y"},
		{"Ctrl-C", "<ctrl+c>", confirm, "interrupted at a question"},
		{"Ctrl-C clears the input", "abc<ctrl+c><enter>", confirm, "= "},
		{"Ctrl-C after a cleared input", "abc<ctrl+c><ctrl+c>", confirm, "interrupted at a question"},
		{"Ctrl-C clears a secret", "s3cret<ctrl+c><up><enter>", secret, "= "},
		{"Ctrl-D", "<ctrl+d>", confirm, "user has quit"},
		{"Ctrl-D in a text deletes", "ab<left><ctrl+d><enter>", confirm, "= a"},
		{"Esc twice clears the input", "ab<esc><esc><enter>", confirm, "= "},
		{"Esc and Enter send", "ab<esc><enter>", confirm, "= ab"},
		{"Enter in a multiline answer", "a<enter>b<esc><enter>", multiline, "= a\nb"},
		{"Ctrl-D at the end of a multiline answer", "a<enter>b<ctrl+d>", multiline, "= a\nb"},
		{"Ctrl-D within a multiline answer", "a<enter>bc<left><ctrl+d><esc><enter>", multiline, "= a\nb"},
		{"Alt-Enter in a multiline answer", "a<alt+enter>b<ctrl+d>", multiline, "= a\nb"},
		{"a slash command in a multiline answer", "/y<enter>", multiline, "= /y"},
		{"Alt-Enter adds a line", "a<alt+enter>b<enter>", task, "= a\nb"},
		{"Shift-Enter adds a line", "a<shift+enter>b<enter>", task, "= a\nb"},
		{"Ctrl-J adds a line", "a<ctrl+j>b<enter>", task, "= a\nb"},
		{"a backslash at the end adds a line", `a\<enter>b<enter>`, task, "= a\nb"},
		{"a backslash within", `a\b<enter>`, task, `= a\b`},
		{"readline keys", "a b c<ctrl+w>d<ctrl+a>x<enter>", task, "= xa b d"},
		{"Tab completes", "/yo<tab><enter>", confirm, "= /yolo"},
		{"Tab twice selects the next match", "/<tab><tab><enter>", confirm, "= /yolo"},
		{"Down selects the next match", "/<down><down><down><up><enter>", confirm, "= /yolo"},
		{"Up selects the last match", "/<up><enter>", confirm, "= /quit"},
		{"Tab without a match", "/zzz<tab><enter>", confirm, "= /zzz"},
		{"Tab selects an answer", "<tab><enter>", keep, "= keep"},
		{"Tab twice selects the next answer", "<tab><tab><enter>", keep, "= undo"},
		{"Shift-Tab changes the mode", "<shift+tab>", task, "= /yolo"},
		{"Ctrl-G shows the diff", "<ctrl+g>", confirm, "= /d"},
		{"Ctrl-T shows the reasoning", "<ctrl+t>", confirm, "= /t"},
		{"a secret", "s3cret<enter>", secret, "= s3cret"},
		{"a secret with a backslash at its end", `s3cret\<enter>`, secret, `= s3cret\`},
		{"no key", "", confirm, "nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 80, 24)
			s.ask(tt.q)
			s.keys(tt.keys)
			if got := s.answer(); got != tt.answer {
				t.Errorf("%s: %q, want %q", tt.keys, got, tt.answer)
			}
			if inputs := s.inputs(); inputs != "" {
				t.Errorf("the handler was called: %q", inputs)
			}
			if strings.Contains(s.terminal.String(), "s3cret") {
				t.Errorf("a secret is shown:\n%s", s.terminal)
			}
		})
	}
}

// A text that was typed before a question about a command does not answer it, and returns to the input after it.
func TestTextBeforeQuestion(t *testing.T) {
	for keys, want := range map[string]string{
		"<enter>": "nothing", "<enter><enter>": "= ", "y<enter>": "= y", "no<enter>": "= no", "<ctrl+c>": "interrupted at a question",
	} {
		s := newScene(t, 80, 24)
		s.keys("also the tests")
		s.ask(confirm)
		s.keys(keys)
		if got := s.answer(); got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
		if want == "nothing" {
			continue
		}
		s.keys("<enter>")
		if got := s.inputs(); got != "also the tests" {
			t.Errorf("%s: the agent gets %q", keys, got)
		}
	}
}

func TestKeysWithoutQuestion(t *testing.T) {
	for _, tt := range []struct{ name, keys, want string }{
		{"a text is a message to the agent", "use tabs<enter>", "use tabs"},
		{"a slash command", "/d<enter>", "/d"},
		{"Enter without a text does nothing", "<enter> <enter>", ""},
		{"Ctrl-C", "<ctrl+c>", "^C"},
		{"Ctrl-C with a text", "abc<ctrl+c><enter>", "^C"},
		{"Ctrl-D does not quit", "<ctrl+d>", ""},
		{"Shift-Tab", "<shift+tab>", "/yolo"},
		{"Ctrl-T and Ctrl-G", "<ctrl+t><ctrl+g>", "/t|/d"},
		{"a text stays at Shift-Tab", "ab<shift+tab>c<enter>", "/yolo|abc"},
		{"history", "one<enter>two<enter><up><up><enter><up><enter>", "one|two|one|one"},
		{"history and back to the draft", "one<enter>dra<up><down>ft<enter>", "one|draft"},
		{"the history has the input that Ctrl-C dropped", "abc<ctrl+c><up><enter>", "^C|abc"},
		{"the history has the input that Esc cleared", "abc<esc><esc><up><enter>", "abc"},
		{"Up within lines", "a<ctrl+j>b<up>x<enter>", "ax\nb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 80, 24)
			s.keys(tt.keys)
			if got := s.inputs(); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.keys, got, tt.want)
			}
		})
	}
}

// Shift-Tab at a confirmation changes the mode, but does not decide on the command.
func TestShiftTabAtConfirmation(t *testing.T) {
	s := newScene(t, 80, 24)
	s.ask(confirm)
	s.keys("<shift+tab>")
	if answer, inputs := s.answer(), s.inputs(); answer != "nothing" || inputs != "/yolo" {
		t.Errorf("answer %q, inputs %q", answer, inputs)
	}
}

// Enter does not answer a question that is not visible yet.
func TestTypedAhead(t *testing.T) {
	s := newScene(t, 80, 24)
	s.question = &pendingQuestion{Question: confirm, reply: make(chan answer, 1)}
	s.m.feed.push(s.question)
	s.m.Update(feedMsg{})
	s.m.Update(keyNamed(t, "enter"))
	if got := s.answer(); got != "nothing" {
		t.Fatalf("a question that is not visible was answered: %s", got)
	}
	s.paint()
	s.keys("<enter>")
	if got := s.answer(); got != "= " {
		t.Errorf("the answer is %q", got)
	}
}

// A paste does not submit the input. Line ends are normalized, and long pastes become
// placeholders.
func TestPaste(t *testing.T) {
	long := strings.Repeat("a line\n", 40)
	for _, tt := range []struct{ name, paste, want, shown string }{
		{"Windows line ends", "a\r\nb\rc", "a\nb\nc", "❯ a"},
		{"long", long, long, "[pasted 1: 40 lines]"},
		{"one long line", strings.Repeat("x", 5000), strings.Repeat("x", 5000), "[pasted 1: 5000 characters]"},
		{"escape sequences", "a\x1b[2Jb", "a\x1b[2Jb", "[pasted 1: 6 characters]"},
		{"tabs", "a\tb", "a\tb", "[pasted 1: 3 characters]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 80, 24)
			s.keys("x")
			s.send(tea.PasteMsg{Content: tt.paste})
			if screen := s.terminal.String(); !strings.Contains(strings.ReplaceAll(screen, "█", ""), strings.Replace(tt.shown, "❯ ", "❯ x", 1)) {
				t.Errorf("the screen is\n%s", screen)
			}
			if got := s.inputs(); got != "" {
				t.Errorf("it was sent: %q", got)
			}
			s.keys("y<enter>")
			if got := s.inputs(); got != "x"+tt.want+"y" {
				t.Errorf("%q was sent", got)
			}
		})
	}
}

// Joined emoji are sent unchanged and shown side by side, which has the same width on every
// terminal.
func TestEmoji(t *testing.T) {
	family := "👨\u200d👩\u200d👧"
	for _, paste := range []bool{false, true} {
		s := newScene(t, 80, 24)
		s.keys("a ")
		if paste {
			s.send(tea.PasteMsg{Content: family})
		} else {
			s.send(tea.KeyPressMsg{Code: tea.KeyExtended, Text: family})
		}
		if screen := s.terminal.String(); !strings.Contains(screen, "|❯ a 👨👩👧█\n") {
			t.Errorf("pasted %t: the screen is\n%s", paste, screen)
		}
		s.keys("<left>x<enter>")
		if got := s.inputs(); got != "a 👨\u200d👩\u200dx👧" {
			t.Errorf("pasted %t: %q was sent", paste, got)
		}
	}
}

// Emoji wider than the text area expects wrap into the next row.
func TestEmojiWrap(t *testing.T) {
	s := newScene(t, 20, 12)
	s.send(tea.PasteMsg{Content: strings.Repeat("👨\u200d👩\u200d👧 ", 4) + "x"})
	if screen := s.terminal.String(); !strings.Contains(screen, "|❯ 👨👩👧 👨👩👧 👨\n|  👩👧 👨👩👧 x█\n") {
		t.Errorf("the screen is\n%s", screen)
	}
}

// A withdrawn question cannot be answered.
func TestWithdrawn(t *testing.T) {
	s := newScene(t, 80, 24)
	s.ask(confirm)
	s.show(questionWithdrawn{s.question})
	s.keys("no<enter>")
	if got := s.answer() + s.inputs(); got != "nothingno" {
		t.Errorf("the answer and the input are %q", got)
	}
}

// A repeated question shows its command again only if the command may have scrolled off. A
// command is not shown again when it runs.
func TestCommandShown(t *testing.T) {
	s := newScene(t, 80, 24)
	shown := func() int { return strings.Count(s.terminal.String(), "$ ls") }
	s.ask(confirm)
	s.keys("/d<enter>")
	s.ask(confirm)
	if n := shown(); n != 1 {
		t.Errorf("the command is shown %d times at the repeated question", n)
	}
	s.keys("/d<enter>")
	s.show(chat.Notice{Text: patch, IsDiff: true})
	s.ask(confirm)
	if n := shown(); n != 2 {
		t.Errorf("the command is shown %d times after a diff", n)
	}
	s.keys("<enter>")
	s.run("ls", "a\n", 0)
	if n := shown(); n != 2 {
		t.Errorf("the command is shown %d times when it runs", n)
	}
	s.run("ls", "a\n", 0)
	if n := shown(); n != 3 {
		t.Errorf("the command is shown %d times when it runs again", n)
	}
}

// The frontend shows its keys and passes /h on to the session.
func TestHelp(t *testing.T) {
	s := newScene(t, 80, 24)
	s.ask(confirm)
	s.keys("/h<enter>")
	if got := s.answer(); got != "= /h" || !strings.Contains(s.terminal.String(), keysHelp()[0]+"\n") {
		t.Errorf("the answer is %q, the screen\n%s", got, s.terminal)
	}
}

// A key that deletes the end of a paste's mark deletes the mark and its text.
func TestDeletePastedText(t *testing.T) {
	for _, key := range []string{"<backspace>", "<ctrl+w>"} {
		s := newScene(t, 80, 24)
		s.keys("a")
		s.m.Update(tea.PasteMsg{Content: strings.Repeat("line\n", 300)})
		s.keys(key + "b<enter>")
		if got := s.inputs(); got != "ab" {
			t.Errorf("%s: %q is sent", key, got)
		}
	}
}

// Ctrl-O shows the whole output of a command that was shortened.
func TestPagerHasOutput(t *testing.T) {
	s := newScene(t, 80, 24)
	s.m.showItem(starts("seq 500"))
	for i := range 500 {
		s.m.showItem(events.OutputChunk{Data: fmt.Appendf(nil, "row %d\n", i)})
	}
	s.m.showItem(trajectories.Execution{})
	if !strings.Contains(s.m.transcript.FullText(), "row 0\n") || !strings.Contains(s.m.transcript.FullText(), "row 250\n") || !strings.Contains(s.m.transcript.FullText(), "row 499\n") {
		t.Errorf("the pager shows %d bytes", len(s.m.transcript.FullText()))
	}
}
