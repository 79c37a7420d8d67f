package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
)

// action is what a slash command does.
type action int

const (
	actionUnknown action = iota
	actionSurplus        // a command with a text that takes none
	actionMode
	actionMultiline
	actionDiff
	actionUndo
	actionThinking
	actionState
	actionHelp
	actionModel
	actionCompact
	actionNew
	actionSessions
	actionQuit
)

// slashCommand is a SlashCommand and its action.
type slashCommand struct {
	SlashCommand
	action action
	mode   Mode
	typed  string // the unknown command in lower case, for actionUnknown; the text, for actionSurplus
	rest   string // the text after the command
}

// commands returns the slash commands in the order of the help.
func commands() []slashCommand {
	return []slashCommand{
		{SlashCommand: SlashCommand{"/h", "/help", "show this list"}, action: actionHelp},
		{SlashCommand: SlashCommand{"/y", "/yolo", "run commands without asking"}, action: actionMode, mode: Yolo},
		{SlashCommand: SlashCommand{"/c", "/confirm", "ask before each command"}, action: actionMode, mode: Confirm},
		{SlashCommand: SlashCommand{"/u", "/human", "write the commands yourself"}, action: actionMode, mode: Human},
		{SlashCommand: SlashCommand{"/m", "/multiline", "answer in several lines; Ctrl-D sends them"}, action: actionMultiline},
		{SlashCommand: SlashCommand{"/d", "/diff", "show what has changed in the files"}, action: actionDiff},
		{SlashCommand: SlashCommand{"/undo", "", "undo the last step, or all"}, action: actionUndo},
		{SlashCommand: SlashCommand{"/t", "/thinking", "show or hide the model's reasoning"}, action: actionThinking},
		{SlashCommand: SlashCommand{"/s", "/cost", "show steps, cost, tokens and time"}, action: actionState},
		{SlashCommand: SlashCommand{"/model", "", "show the model; with a name, switch to it"}, action: actionModel},
		{SlashCommand: SlashCommand{"/compact", "", "shorten the conversation; a text says what to keep"}, action: actionCompact},
		{SlashCommand: SlashCommand{"/new", "", "begin another conversation, as /clear; a text is its task"}, action: actionNew},
		{SlashCommand: SlashCommand{"/sessions", "", "list the sessions of this folder; a text searches them"}, action: actionSessions},
		{SlashCommand: SlashCommand{"/q", "/quit", "quit, as /exit; mini --continue resumes later"}, action: actionQuit},
	}
}

// SlashCommands returns the slash commands, for help and completion.
func SlashCommands() []SlashCommand {
	var all []SlashCommand
	for _, c := range commands() {
		all = append(all, c.SlashCommand)
	}
	return all
}

// slashPattern matches a slash and letters: a known or unknown command, but not a path of several
// elements.
var slashPattern = lazyregexp.New(`^/[a-z?]*$`)

// plainWords are commands that need no slash, because other programs have them so.
var plainWords = []string{"exit", "quit", "help"}

// parseSlash parses a text as a slash command, with a text after it if it has only one line. It
// returns false for other texts.
func parseSlash(text string) (slashCommand, bool) {
	text = strings.TrimSpace(text)
	word, rest, _ := strings.Cut(text, " ")
	if word = strings.ToLower(word); slices.Contains(plainWords, word) && rest == "" {
		word = "/" + word
	}
	found := slashCommand{typed: word}
	for _, c := range commands() {
		isAlias := c.action == actionHelp && (word == "/?" || word == "/") || c.action == actionQuit && word == "/exit" || c.action == actionNew && word == "/clear"
		if word == c.Name || word == c.LongName && word != "" || isAlias {
			found = c
		}
	}
	found.rest = strings.TrimSpace(rest)
	if !slashPattern.MatchString(word) || strings.Contains(text, "\n") && !found.takesText() {
		return slashCommand{}, false
	}
	if found.rest != "" && !found.takesText() && found.action != actionUnknown {
		found = slashCommand{action: actionSurplus, typed: text, SlashCommand: found.SlashCommand}
	}
	return found, true
}

// takesText reports whether a text may follow the command on its line.
func (c slashCommand) takesText() bool {
	switch c.action {
	case actionModel, actionUndo, actionCompact, actionNew, actionSessions:
		return true
	}
	return false
}

// unescape removes the first of two leading slashes, with which the user marks a text that is
// not a slash command.
func unescape(text string) string {
	if strings.HasPrefix(text, "//") {
		return text[1:]
	}
	return text
}

// runSlash executes a slash command. It reports whether the mode has changed. The callers handle
// the commands that depend on the open question: /multiline, /undo, /new and /quit.
func (s *Session) runSlash(ctx context.Context, cmd slashCommand) bool {
	switch cmd.action {
	case actionMode:
		return s.setMode(cmd.mode)
	case actionHelp:
		s.notify("%s", helpText())
	case actionDiff:
		if changes, ok := s.currentChanges(ctx); ok {
			s.Frontend.ShowNotice(Notice{Text: changes.Patch, IsDiff: true})
			s.notify("%s", changes.Summary)
		}
		s.WarnGitFiles()
	case actionThinking:
		s.updateState(func(st *State) { st.ShowThinking = !st.ShowThinking })
		notices := map[bool]string{true: "Reasoning is shown.", false: "Reasoning is hidden."}
		s.notify("%s", notices[s.currentState().ShowThinking])
	case actionModel:
		s.switchModel(ctx, cmd.rest)
	case actionCompact:
		s.Inbox.Compact(cmd.rest, func() { s.notify("There is nothing to compact yet.") })
		s.notify("The conversation is compacted before the model's next step.")
	case actionSessions:
		if s.Sessions == nil {
			s.notifyError("Sessions in a container are not kept.")
		} else {
			s.notify("%s", s.Sessions(cmd.rest))
		}
	case actionState:
		s.notify("%s", s.currentState().StatusLine())
	case actionSurplus:
		s.notifyError("%s takes no text after it; /%s sends it to the model.", cmd.Name, text.Printable(text.Clip(cmd.typed, 100)))
	case actionUnknown:
		s.notifyError("%s", unknownSlash(cmd.typed))
	}
	return false
}

func unknownSlash(typed string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.Name, c.LongName)
	}
	// The mode that runs commands without a question is never suggested.
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" || n == "/y" || n == "/yolo" })
	message := fmt.Sprintf("Unknown command %s", text.Printable(typed))
	if suggestion := configs.ClosestName(typed, names); suggestion != "" {
		message += "; did you mean " + suggestion + "?"
	} else {
		message += "."
	}
	return message + " /h lists the commands; /" + text.Printable(typed) + " sends it to the model."
}

func helpText() string {
	var b strings.Builder
	for _, c := range commands() {
		names := c.Name
		if c.LongName != "" {
			names += ", " + c.LongName
		}
		fmt.Fprintf(&b, "  %-16s %s\n", names, c.Description)
	}
	b.WriteString("At a command, Enter or y runs it; if a rule asks, Enter rejects it, as n does.\n")
	b.WriteString("e edits it, a always allows commands like it, a comment rejects it and says why.\n")
	b.WriteString("!COMMAND runs a command in the session's environment and shows it to the model.\n")
	b.WriteString("@ and the beginning of a path: Tab completes it. The model gets the path.\n")
	b.WriteString("Ctrl-C interrupts the agent and asks for a message to the model; twice quits.\n")
	b.WriteString("A line entered while the model works is sent to it before its next step.\n")
	b.WriteString("To send a text that begins with a slash, type two: //etc/hosts")
	return b.String()
}
