package screen

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/minibench/mini/agent/events"
	"github.com/minibench/mini/cmd/mini/internal/chat"
	"github.com/minibench/mini/cmd/mini/internal/hostile"
	tty "github.com/minibench/mini/cmd/mini/internal/screen"
	"github.com/minibench/mini/trajectories"
)

// Nothing that comes in steers the terminal, whichever way it takes.
func TestHostile(t *testing.T) {
	ways := map[string]func(s *scene, text string){
		"task": func(s *scene, text string) {
			s.show(events.RunStarted{Task: text, Model: text, Environment: text, Dir: text})
		},
		"live text": func(s *scene, text string) { s.show(events.TextDelta{Text: text}) },
		"live thought": func(s *scene, text string) {
			s.show(events.TextDelta{Text: text, Thinking: true})
		},
		"reply": func(s *scene, text string) {
			s.show(events.Replied{Text: text + "\n```\n" + text + "\n```\n# " + text, Reasoning: text, Commands: []string{text}})
		},
		"command": func(s *scene, text string) {
			s.show(events.ActionStarted{Command: text}, events.ActionEnded{Command: text})
		},
		"live output": func(s *scene, text string) {
			s.show(events.ActionStarted{Command: "x"}, events.OutputChunk{Data: []byte(text)})
		},
		"output": func(s *scene, text string) {
			s.show(events.ActionStarted{Command: "x"})
			for i := range len(text) { // cut anywhere
				if i < 300 {
					s.m.feed.push(events.OutputChunk{Data: []byte(text[i : i+1])})
				}
			}
			s.show(events.ActionEnded{ExitCode: -1, Exception: text})
		},
		"decision": func(s *scene, text string) {
			s.show(events.Decided{Command: text, Action: text, By: text, Rule: text, Reason: text})
		},
		"format error": func(s *scene, text string) { s.show(events.FormatError{Text: text}) },
		"told":         func(s *scene, text string) { s.show(events.Told{Text: text}) },
		"limit":        func(s *scene, text string) { s.show(events.LimitReached{Which: text}) },
		"compacted":    func(s *scene, text string) { s.show(events.Compacted{Policy: text}) },
		"ended": func(s *scene, text string) {
			s.show(events.Ended{Outcome: trajectories.Outcome{ExitStatus: text, Error: text}})
		},
		"note":     func(s *scene, text string) { s.show(chat.Note{Text: text}) },
		"bad note": func(s *scene, text string) { s.show(chat.Note{Text: text, Bad: true}) },
		"diff":     func(s *scene, text string) { s.show(chat.Note{Text: "diff " + text + "\n+" + text, Diff: true}) },
		"question": func(s *scene, text string) {
			s.ask(chat.Question{Kind: chat.AskConfirm, Text: text, Hint: text, Command: text, Reason: text})
		},
		"answers": func(s *scene, text string) {
			s.ask(chat.Question{Kind: chat.AskWord, Text: text, Answers: []string{text, text}})
		},
		"state": func(s *scene, text string) { s.state(func(st *chat.State) { st.Model, st.Busy = text, text }) },
		"paste": func(s *scene, text string) {
			s.send(tea.PasteMsg{Content: text})
			s.keys("<enter>")
		},
		"typed": func(s *scene, text string) {
			s.send(tea.KeyPressMsg{Text: text})
			s.keys("<enter><up>")
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, w := range []int{80, 9} {
				s, now := newScene(t, w, 24), ""
				s.painter.w = discard{}
				s.look = func(p page) {
					for _, row := range append(p.above, p.live...) {
						if trouble := hostile.Steers(row, hostile.Colours); trouble != "" {
							t.Errorf("%s at %d columns: %s in %q", now, w, trouble, row)
						}
						if wide := tty.Width(row); wide >= w {
							t.Errorf("%s: a row of %d columns of %d: %q", now, wide, w, row)
						}
					}
				}
				for _, attack := range hostile.Attacks() {
					if now = attack.Name; !t.Failed() {
						way(s, attack.Text)
						s.told()
					}
				}
			}
		})
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// What comes faster than it can be shown takes bounded memory, and shows its end.
func TestFlood(t *testing.T) {
	s := newScene(t, 80, 24)
	s.show(events.ActionStarted{Command: "yes"})
	line := []byte(strings.Repeat("all work and no play ", 3) + "\n")
	chunk := bytes.Repeat(line, 1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3200 { // 200 MB
		s.m.feed.push(events.OutputChunk{Data: chunk})
		if i%100 == 99 {
			s.m.Update(arrived{})
		}
	}
	s.m.feed.push(events.OutputChunk{Data: []byte("the last line\n")})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	s.show(events.ActionEnded{Bytes: 200 << 20, Truncated: true})
	screen := s.terminal.String()
	for _, want := range []string{"the last line", "209 MB of output, the middle not kept", "lines left out and", "MB not shown"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not there:\n%s", want, screen[max(0, len(screen)-3000):])
		}
	}
	if n := strings.Count(screen, "\n"); n > 150 {
		t.Errorf("%d lines are written", n)
	}
}

// A terminal that takes nothing is waited for in bounded memory.
func TestStuck(t *testing.T) {
	s := newScene(t, 80, 24)
	for i := range 200_000 {
		s.m.feed.push(chat.Note{Text: fmt.Sprintf("note %d, which is a bit longer than it would have to be for what it says", i)})
		if i%1000 == 999 {
			s.m.Update(arrived{})
		}
	}
	if n := s.m.canvas.bytes; n > maxAbove {
		t.Errorf("%d bytes wait", n)
	}
	s.paint()
	screen := s.terminal.String()
	for _, want := range []string{"lines were not shown: the terminal took no output", "note 199999"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not there:\n%s", want, screen[max(0, len(screen)-3000):])
		}
	}
}

// A long line is bounded, wherever it comes from.
func TestLongLines(t *testing.T) {
	s := newScene(t, 80, 24)
	s.run("wide", strings.Repeat("\x1b[31mred\x1b[m", 10_000)+"\n"+strings.Repeat("界", 5000)+"\nend\n", 0)
	screen := s.terminal.String()
	if n := strings.Count(screen, "\n"); n > 40 {
		t.Errorf("%d lines are written:\n%s", n, screen)
	}
	for _, want := range []string{"29,368 columns more in this line", "9,376 columns more", "end"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not there:\n%s", want, screen)
		}
	}
}

// A question is never dropped, and the order stays.
func TestFeed(t *testing.T) {
	f := newFeed()
	q := &asked{}
	f.push(events.TurnStarted{Step: 1})
	f.push(q)
	for range 3 * maxWaiting {
		f.push(chat.Note{Text: "n"})
	}
	items, _ := f.take()
	if len(items) > maxWaiting || items[1] != any(q) {
		t.Errorf("%d items, the second a %T", len(items), items[1])
	}
	if l, ok := items[0].(lost); !ok {
		t.Errorf("the first is %v", l)
	}
	for range 1000 {
		f.push(events.TextDelta{Text: "a"})
	}
	f.push(events.TextDelta{Restart: true})
	f.push(events.TextDelta{Text: "b"})
	items, _ = f.take()
	if len(items) != 2 || items[1] != any(events.TextDelta{Text: "b", Restart: true}) {
		t.Errorf("the pieces are %v", items)
	}
}
