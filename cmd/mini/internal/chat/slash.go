package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/report"
)

// act is what a slash command does.
type act int

const (
	actUnknown act = iota
	actMode
	actMulti
	actDiff
	actUndo
	actThinking
	actState
	actHelp
	actLeave
)

// command is a slash command with what it does.
type command struct {
	Slash
	act  act
	mode Mode
	typo string // of actUnknown: what was typed
}

// commands are in the order of help.
func commands() []command {
	return []command{
		{Slash: Slash{"/h", "/help", "show this list"}, act: actHelp},
		{Slash: Slash{"/y", "/yolo", "run commands without asking"}, act: actMode, mode: Yolo},
		{Slash: Slash{"/c", "/confirm", "ask before each command"}, act: actMode, mode: Confirm},
		{Slash: Slash{"/u", "/human", "write the commands yourself"}, act: actMode, mode: Human},
		{Slash: Slash{"/m", "/multiline", "answer in several lines"}, act: actMulti},
		{Slash: Slash{"/d", "/diff", "show what has changed in the files"}, act: actDiff},
		{Slash: Slash{"/undo", "", "put the files back as they were at the start"}, act: actUndo},
		{Slash: Slash{"/t", "/thinking", "show or hide what the model thinks"}, act: actThinking},
		{Slash: Slash{"/s", "/cost", "show steps, cost, tokens and time"}, act: actState},
		{Slash: Slash{"/q", "/quit", "leave; mini --continue goes on later"}, act: actLeave},
	}
}

// Slashes are the slash commands, for help and completion.
func Slashes() []Slash {
	var all []Slash
	for _, c := range commands() {
		all = append(all, c.Slash)
	}
	return all
}

// slashed matches what is meant as a slash command, and no path or sentence.
var slashed = lazyregexp.New(`^/[a-z?]*$`)

// parse finds the slash command that a text is.
func parse(text string) (command, bool) {
	word := strings.ToLower(strings.TrimSpace(text))
	if !slashed.MatchString(word) {
		return command{}, false
	}
	for _, c := range commands() {
		if word == c.Name || word == c.Long || c.act == actHelp && (word == "/?" || word == "/") {
			return c, true
		}
	}
	return command{typo: word}, true
}

// unescaped is a text that begins with a slash, written with two.
func unescaped(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// obey does what a slash command says that is no matter of a question. It says
// whether the mode has changed.
func (s *Session) obey(ctx context.Context, c command) bool {
	switch c.act {
	case actMode:
		return s.switchTo(c.mode)
	case actHelp:
		s.tell("%s", help())
	case actDiff:
		if changes, ok := s.changes(ctx); ok {
			s.Front.Tell(Note{Text: changes.Patch, Diff: true})
			s.tell("%s", changes.Summary)
		}
	case actThinking:
		s.note(func(st *State) { st.Thinking = !st.Thinking })
		s.tell("%s", map[bool]string{true: "Thinking is shown.", false: "Thinking is hidden."}[s.now().Thinking])
	case actState:
		s.tell("%s", s.now().Line())
	case actUnknown:
		s.complain("%s", unknown(c.typo))
	}
	return false
}

func unknown(typo string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.Name, c.Long)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	text := fmt.Sprintf("There is no %s", report.Printable(typo))
	if near := configs.Nearest(typo, names); near != "" {
		text += "; did you mean " + near + "?"
	} else {
		text += "."
	}
	return text + " /h lists the commands; /" + report.Printable(typo) + " sends it to the model."
}

func help() string {
	var b strings.Builder
	for _, c := range commands() {
		names := c.Name
		if c.Long != "" {
			names += ", " + c.Long
		}
		fmt.Fprintf(&b, "  %-16s %s\n", names, c.About)
	}
	b.WriteString("Ctrl-C interrupts what runs, and asks what to tell the model; once more leaves.\n")
	b.WriteString("A line that is typed while the model works is told to it before its next step.\n")
	b.WriteString("A text that begins with a slash is written with two: //etc/hosts")
	return b.String()
}
