package term

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

var confirm = chat.Question{Kind: chat.AskConfirm, Text: "Run it?", Command: "ls"}

// Keys at a question.
func TestKeysAtQuestion(t *testing.T) {
	task := chat.Question{Kind: chat.AskTask, Text: "What?"}
	multi := chat.Question{Kind: chat.AskMessage, Text: "What?", Multiline: true}
	keep := chat.Question{Kind: chat.AskKeepChanges, Text: "Keep?", Answers: []string{"keep", "undo"}}
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
		{"Ctrl-C drops what is written", "abc<ctrl+c>", confirm, "interrupted at a question"},
		{"Ctrl-D", "<ctrl+d>", confirm, "user has quit"},
		{"Ctrl-D in a text deletes", "ab<left><ctrl+d><enter>", confirm, "= a"},
		{"Esc empties", "ab<esc><esc><enter>", confirm, "= "},
		{"Esc and Enter send", "ab<esc><enter>", confirm, "= ab"},
		{"Enter where lines are wanted", "a<enter>b<alt+enter>", multi, "= a\nb"},
		{"Ctrl-D where lines are wanted", "a<enter>b<ctrl+d>", multi, "= a\nb"},
		{"Ctrl-D within them", "a<enter>bc<left><ctrl+d><alt+enter>", multi, "= a\nb"},
		{"Esc and Enter where lines are wanted", "a<enter>b<esc><enter>", multi, "= a\nb"},
		{"a slash command where lines are wanted", "/y<enter>", multi, "= /y"},
		{"lines by Alt-Enter", "a<alt+enter>b<enter>", task, "= a\nb"},
		{"lines by Shift-Enter", "a<shift+enter>b<enter>", task, "= a\nb"},
		{"lines by Ctrl-J", "a<ctrl+j>b<enter>", task, "= a\nb"},
		{"lines by a backslash", `a\<enter>b<enter>`, task, "= a\nb"},
		{"a backslash within", `a\b<enter>`, task, `= a\b`},
		{"keys of readline", "a b c<ctrl+w>d<ctrl+a>x<enter>", task, "= xa b d"},
		{"Tab completes", "/yo<tab><enter>", confirm, "= /yolo"},
		{"Tab goes on", "/<tab><tab><enter>", confirm, "= /yolo"},
		{"Tab of no command", "/zzz<tab><enter>", confirm, "= /zzz"},
		{"Tab chooses an answer", "<tab><enter>", keep, "= keep"},
		{"Tab chooses another", "<tab><tab><enter>", keep, "= undo"},
		{"Shift-Tab changes the mode", "<shift+tab>", confirm, "= /yolo"},
		{"Ctrl-G is the diff", "<ctrl+g>", confirm, "= /d"},
		{"Ctrl-T is thinking", "<ctrl+t>", confirm, "= /t"},
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
			if told := s.inputs(); told != "" {
				t.Errorf("the core was told %q", told)
			}
			if strings.Contains(s.terminal.String(), "s3cret") {
				t.Errorf("a secret is shown:\n%s", s.terminal)
			}
		})
	}
}

// Keys while no question is open.
func TestKeysWithoutQuestion(t *testing.T) {
	for _, tt := range []struct{ name, keys, told string }{
		{"a text steers", "use tabs<enter>", "use tabs"},
		{"a slash command", "/d<enter>", "/d"},
		{"Enter alone is nothing", "<enter> <enter>", ""},
		{"Ctrl-C", "<ctrl+c>", "^C"},
		{"Ctrl-C with a text", "abc<ctrl+c><enter>", "^C"},
		{"Ctrl-D does not leave", "<ctrl+d>", ""},
		{"Shift-Tab", "<shift+tab>", "/yolo"},
		{"Ctrl-T and Ctrl-G", "<ctrl+t><ctrl+g>", "/t|/d"},
		{"a text stays at Shift-Tab", "ab<shift+tab>c<enter>", "/yolo|abc"},
		{"history", "one<enter>two<enter><up><up><enter><up><enter>", "one|two|one|one"},
		{"history forth", "one<enter>dra<up><down>ft<enter>", "one|draft"},
		{"what Ctrl-C dropped", "abc<ctrl+c><up><enter>", "^C|abc"},
		{"what Esc dropped", "abc<esc><esc><up><enter>", "abc"},
		{"Up within lines", "a<ctrl+j>b<up>x<enter>", "ax\nb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t, 80, 24)
			s.keys(tt.keys)
			if got := s.inputs(); got != tt.told {
				t.Errorf("%s: %q, want %q", tt.keys, got, tt.told)
			}
		})
	}
}

// A key does not answer a question that is not yet visible.
func TestTypedAhead(t *testing.T) {
	s := newScene(t, 80, 24)
	s.asked = &pendingQuestion{Question: confirm, reply: make(chan answer, 1)}
	s.m.feed.push(s.asked)
	s.m.Update(feedMsg{})
	s.m.Update(keyNamed(t, "enter"))
	if got := s.answer(); got != "nothing" {
		t.Fatalf("an unseen question was answered: %s", got)
	}
	s.paint()
	s.keys("<enter>")
	if got := s.answer(); got != "= " {
		t.Errorf("the answer is %q", got)
	}
}

// A paste is one input with any kind of line ends; long pastes become placeholders.
func TestPaste(t *testing.T) {
	long := strings.Repeat("a line\n", 40)
	for _, tt := range []struct{ name, paste, want, shown string }{
		{"lines of Windows", "a\r\nb\rc", "a\nb\nc", "❯ a"},
		{"long", long, long, "[pasted 1: 40 lines]"},
		{"one long line", strings.Repeat("x", 5000), strings.Repeat("x", 5000), "[pasted 1: 5,000 characters]"},
		{"what a terminal would obey", "a\x1b[2Jb", "a\x1b[2Jb", "[pasted 1: 6 characters]"},
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
	s.show(questionWithdrawn{s.asked})
	s.keys("no<enter>")
	if got := s.answer() + s.inputs(); got != "nothingno" {
		t.Errorf("the answer and the input are %q", got)
	}
}

// A repeated question shows its command again if that may have scrolled off, and the command
// is not shown again when it runs.
func TestCommandShown(t *testing.T) {
	s := newScene(t, 80, 24)
	shown := func() int { return strings.Count(s.terminal.String(), "$ ls") }
	s.ask(confirm)
	s.keys("/d<enter>")
	s.ask(confirm)
	if n := shown(); n != 1 {
		t.Errorf("with nothing between, it is shown %d times", n)
	}
	s.keys("/d<enter>")
	s.show(chat.Notice{Text: patch, IsDiff: true})
	s.ask(confirm)
	if n := shown(); n != 2 {
		t.Errorf("after a diff it is shown %d times", n)
	}
	s.keys("<enter>")
	s.run("ls", "a\n", 0)
	if n := shown(); n != 2 {
		t.Errorf("when it runs, it is shown %d times", n)
	}
	s.run("ls", "a\n", 0)
	if n := shown(); n != 3 {
		t.Errorf("when it runs once more, it is shown %d times", n)
	}
}

// The help contains the keys, in lines that fit.
func TestHelp(t *testing.T) {
	s := newScene(t, 80, 24)
	s.ask(confirm)
	s.keys("/h<enter>")
	if got := s.answer(); got != "= /h" || !strings.Contains(s.terminal.String(), keysHelp()[0]+"\n") {
		t.Errorf("the answer is %q, the screen\n%s", got, s.terminal)
	}
}
