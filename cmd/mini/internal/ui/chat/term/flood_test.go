package term

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	tty "github.com/minibench/mini/cmd/mini/internal/ui/terminal"
	"github.com/minibench/mini/internal/sanitize/attacktest"
	"github.com/minibench/mini/trajectories"
)

// Untrusted text cannot control the terminal.
func TestUntrustedText(t *testing.T) {
	inputs := map[string]func(s *scene, text string){
		"task": func(s *scene, text string) {
			s.show(events.RunStarted{Task: text, Model: text, Environment: text, Dir: text})
		},
		"live text": func(s *scene, text string) { s.show(events.TextDelta{Text: text}) },
		"live thought": func(s *scene, text string) {
			s.show(events.TextDelta{Text: text, Thinking: true})
		},
		"reply": func(s *scene, text string) {
			s.show(replies(text+"\n```\n"+text+"\n```\n# "+text, text, text))
		},
		"command": func(s *scene, text string) {
			s.show(starts(text), events.Recorded{Data: trajectories.Execution{Command: text}})
		},
		"live output": func(s *scene, text string) {
			s.show(starts("x"), events.OutputChunk{Data: []byte(text)})
		},
		"output": func(s *scene, text string) {
			s.show(starts("x"))
			for i := range len(text) { // split at any byte
				if i < 300 {
					s.m.feed.push(events.OutputChunk{Data: []byte(text[i : i+1])})
				}
			}
			s.show(events.Recorded{Data: trajectories.Execution{ExitCode: -1, Exception: text}})
		},
		"decision": func(s *scene, text string) {
			s.show(denies(text, text, text, text))
		},
		"format error": func(s *scene, text string) { s.show(message(trajectories.CauseFormatError, text)) },
		"user message": func(s *scene, text string) { s.show(message(trajectories.CauseSteer, text)) },
		"limit":        func(s *scene, text string) { s.show(events.LimitReached{Limit: text}) },
		"compacted":    func(s *scene, text string) { s.show(events.Recorded{Data: trajectories.Compaction{Policy: text}}) },
		"ended": func(s *scene, text string) {
			s.show(events.Recorded{Data: trajectories.Outcome{ExitStatus: text, Error: text}})
		},
		"note":     func(s *scene, text string) { s.show(chat.Notice{Text: text}) },
		"bad note": func(s *scene, text string) { s.show(chat.Notice{Text: text, IsError: true}) },
		"diff":     func(s *scene, text string) { s.show(chat.Notice{Text: "diff " + text + "\n+" + text, IsDiff: true}) },
		"question": func(s *scene, text string) {
			s.ask(chat.Question{Kind: chat.AskConfirm, Text: text, Hint: text, Command: text, Reason: text})
		},
		"answers": func(s *scene, text string) {
			s.ask(chat.Question{Kind: chat.AskOther, Text: text, Answers: []string{text, text}})
		},
		"state": func(s *scene, text string) { s.setState(func(st *chat.State) { st.Model, st.Activity = text, text }) },
		"paste": func(s *scene, text string) {
			s.send(tea.PasteMsg{Content: text})
			s.keys("<enter>")
		},
		"typed": func(s *scene, text string) {
			s.send(tea.KeyPressMsg{Text: text})
			s.keys("<enter><up>")
		},
	}
	for name, show := range inputs {
		t.Run(name, func(t *testing.T) {
			for _, w := range []int{80, 9} {
				s, attackName := newScene(t, w, 24), ""
				s.m.screen.out = discard{}
				s.onPage = func(p page) {
					for _, row := range slices.Concat(p.menu, p.live) {
						if width := tty.Width(row); width >= w {
							t.Errorf("%s: a row of %d columns of %d: %q", attackName, width, w, row)
						}
					}
					for _, row := range slices.Concat(p.scrollback, p.menu, p.live) {
						if problem := attacktest.FindControl(row, attacktest.Colours); problem != "" {
							t.Errorf("%s at %d columns: %s in %q", attackName, w, problem, row)
						}
					}
				}
				for _, attack := range attacktest.Attacks() {
					if attackName = attack.Name; !t.Failed() {
						show(s, attack.Text)
						s.inputs()
					}
				}
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Output that arrives faster than the terminal shows it takes bounded memory, and its end is
// shown.
func TestFlood(t *testing.T) {
	s := newScene(t, 80, 24)
	s.show(starts("yes"))
	line := []byte(strings.Repeat("all work and no play ", 3) + "\n")
	chunk := bytes.Repeat(line, 1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 320 { // 20 MB
		s.m.feed.push(events.OutputChunk{Data: chunk})
		s.m.feed.push(events.Dropped{Count: 2})
		s.m.Update(feedMsg{})
	}
	s.m.feed.push(events.OutputChunk{Data: []byte("the last line\n")})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	s.show(events.Recorded{Data: trajectories.Execution{Bytes: 200 << 20, Truncated: true}})
	screen := s.terminal.String()
	for _, want := range []string{"the last line", "210 MB of output, the middle omitted", "319990 more lines: Ctrl-O shows the full output", "640 pieces not shown"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the screen:\n%s", want, screen[max(0, len(screen)-3000):])
		}
	}
	if n := strings.Count(screen, "\n"); n > 30 {
		t.Errorf("%d lines are written", n)
	}
}

// While the terminal blocks writes, memory is bounded and no notice is lost.
func TestBlockedTerminal(t *testing.T) {
	s := newScene(t, 80, 24)
	for i := range 3 * maxScrollback {
		s.m.feed.push(chat.Notice{Text: fmt.Sprintf("note %d", i)})
		if i%100 == 99 {
			s.m.Update(feedMsg{})
		}
	}
	if n := len(s.m.screen.next.scrollback); n > maxScrollback+200 {
		t.Errorf("%d lines are waiting", n)
	}
	s.paint()
	s.send(feedMsg{})
	if screen := s.terminal.String(); strings.Count(screen, "note ") != 3*maxScrollback || !strings.Contains(screen, fmt.Sprintf("note %d\n", 3*maxScrollback-1)) {
		t.Errorf("%d notes are on the screen", strings.Count(screen, "note "))
	}
}

// Long lines of an output are shortened.
func TestLongLines(t *testing.T) {
	s := newScene(t, 80, 24)
	s.run("wide", strings.Repeat("\x1b[31mred\x1b[m", 10_000)+"\n"+strings.Repeat("界", 5000)+"\nend\n", 0)
	screen := s.terminal.String()
	if n := strings.Count(screen, "\n"); n > 20 {
		t.Errorf("%d lines are written:\n%s", n, screen)
	}
	for _, want := range []string{"29760 more columns", "9760 more columns", "end"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the screen:\n%s", want, screen)
		}
	}
}

// waitForRoom waits a bounded time for a blocked terminal; push does not wait.
func TestWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFeed(), make(chan struct{})
		fill := func() {
			for range maxQueued {
				f.push(chat.Notice{Text: "n"})
			}
		}
		fill()
		time.AfterFunc(closeTimeout/2, func() { f.drain() })
		if start := time.Now(); !f.waitForRoom(done) || time.Since(start) != closeTimeout/2 {
			t.Errorf("no room after %v", time.Since(start))
		}
		fill()
		f.push(&pendingQuestion{})
		start := time.Now()
		for range 2 { // only the first one waits
			if f.waitForRoom(done) || time.Since(start) != closeTimeout {
				t.Errorf("waited %v for a blocked terminal", time.Since(start))
			}
		}
		if items, _ := f.drain(); len(items) != maxQueued+2 || items[maxQueued+1] != any(events.Dropped{Count: 2}) {
			t.Errorf("%d items, the last are %v", len(items), items[maxQueued:])
		}
		fill()
		close(done)
		if f.waitForRoom(done) {
			t.Error("there is room at the end")
		}
	})
}
