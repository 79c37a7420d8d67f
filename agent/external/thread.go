package external

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// key identifies a message in any form that an agent may send it back in.
type key [sha256.Size]byte

// reminder matches texts that agents add to messages of the user and remove again.
var reminder = lazyregexp.New(`(?s)<system-reminder>.*?</system-reminder>`)

// keyOf ignores ids, thinking, white space around texts and the order of arguments.
func keyOf(m model.Message) key {
	h := sha256.New()
	write := func(s string) { _, _ = io.WriteString(h, s+"\x00") } // never fails
	write(string(m.Role))
	write(normalize(m.Content))
	for _, c := range m.ToolCalls {
		write(c.Name)
		var arguments any
		if json.Unmarshal([]byte(c.Arguments), &arguments) == nil {
			sorted, _ := json.Marshal(arguments) // came from JSON
			write(string(sorted))
		} else {
			write(c.Arguments)
		}
	}
	return key(h.Sum(nil))
}

func normalize(s string) string { return strings.TrimSpace(reminder.ReplaceAllString(s, "")) }

func contains(text, part string) bool { return part != "" && strings.Contains(normalize(text), part) }

// thread is the main conversation or that of a subagent: all recorded messages, and which
// of them the last request showed to the model.
type thread struct {
	journal     agent.Recorder
	offersTools bool
	child       *child   // nil for the main conversation
	spawned     []*child // by calls of this thread, without a record of their results yet

	keys    []key // of all recorded messages
	records []int // their record IDs
	shown   []shown
	actions []action  // of the last reply, without an answer yet
	last    string    // text of the last reply
	replied time.Time // when the last reply arrived
	// restarted is set if the journal begins with messages of another conversation.
	restarted bool
}

// shown is a message of the last request or the reply to it: a recorded one, by index, or
// one that is only in the context.
type shown struct {
	key     key
	index   int // -1 if it is not recorded
	message model.Message
}

// action is a command of a reply, with the id of its call.
type action struct{ id, command string }

// restart makes the thread empty. What the journal has stays there.
func (t *thread) restart() {
	t.keys, t.records, t.shown, t.restarted = nil, nil, nil, true
}

func (t *thread) isEmpty() bool { return len(t.keys) == 0 }

func (t *thread) isPrefix(keys []key) bool {
	return len(t.shown) > 0 && len(keys) >= len(t.shown) && slices.EqualFunc(keys[:len(t.shown)], t.shown, func(k key, s shown) bool { return k == s.key })
}

// continues reports whether a request belongs to the thread: it has the messages of the
// last one, or most of its messages are known, or it repeats the last reply, as a
// conversation does that was made shorter.
func (t *thread) continues(messages []model.Message) bool {
	keys := keysOf(messages)
	return t.isPrefix(keys) || t.knowsMost(keys) || t.isQuoted(messages)
}

func (t *thread) knowsMost(keys []key) bool {
	known := 0
	for _, k := range keys {
		if slices.Contains(t.keys, k) {
			known++
		}
	}
	return 2*known > len(keys) && known > 1
}

func (t *thread) isQuoted(messages []model.Message) bool {
	return len(t.last) >= distinctive && slices.ContainsFunc(messages, func(m model.Message) bool { return contains(m.Content, t.last) })
}

func keysOf(messages []model.Message) []key {
	keys := make([]key, len(messages))
	for i, m := range messages {
		keys[i] = keyOf(m)
	}
	return keys
}

// match sets what the request shows, up to its new messages, and returns the index of the
// first new one.
func (t *thread) match(messages []model.Message) (fresh int) {
	keys := keysOf(messages)
	if t.isPrefix(keys) {
		return len(t.shown)
	}
	var all []shown
	next := 0 // index of the recorded message after the last one found
	for i, k := range keys {
		s := shown{key: k, index: -1, message: messages[i]}
		if at := slices.Index(t.keys[next:], k); at >= 0 {
			s.index, s.message = next+at, model.Message{} // the record has it
			next = s.index + 1
			fresh = i + 1
		}
		all = append(all, s)
	}
	t.shown = all[:fresh]
	return fresh
}

// add adds a message that was recorded.
func (t *thread) add(record int, m model.Message) {
	t.keys, t.records = append(t.keys, keyOf(m)), append(t.records, record)
	t.shown = append(t.shown, shown{key: keyOf(m), index: len(t.keys) - 1})
}

// reply adds the reply to the last request.
func (t *thread) reply(record int, m trajectories.Message, at time.Time) {
	t.add(record, m.Message)
	t.actions, t.replied, t.last = nil, at, normalize(m.Content)
	for i, command := range m.Actions {
		a := action{command: command}
		if i < len(m.ToolCalls) {
			a.id = m.ToolCalls[i].ID
		}
		t.actions = append(t.actions, a)
	}
}

// cause returns why a new message is in the conversation.
func (t *thread) cause(m model.Message) trajectories.Cause {
	if t.replied.IsZero() && m.Role != model.Tool {
		return trajectories.CausePrompt
	}
	return ""
}

// answeredAction returns the command whose result a message has, with the id of its call.
func (t *thread) answeredAction(m model.Message) (a action, ok bool) {
	i := -1
	switch m.Role {
	case model.Tool:
		if i = slices.IndexFunc(t.actions, func(a action) bool { return a.id == m.ToolCallID }); i < 0 && len(t.actions) > 0 {
			i = 0 // the agent uses ids of its own
		}
	case model.User:
		if len(t.actions) > 0 && t.actions[0].id == "" { // a command in the text of the reply
			i = 0
		}
	}
	if i < 0 {
		return action{}, false
	}
	a = t.actions[i]
	t.actions = slices.Delete(t.actions, i, i+1)
	return a, true
}

// context returns what the model is shown, if that is not the whole conversation.
func (t *thread) context() *trajectories.PromptContext {
	whole := len(t.shown) == len(t.keys) && !t.restarted
	c := &trajectories.PromptContext{}
	previous := -2
	for i, s := range t.shown {
		n := len(c.Sent)
		switch {
		case s.index < 0:
			c.Sent = append(c.Sent, trajectories.ContextPart{Message: &t.shown[i].message})
			whole = false
		case s.index == previous+1:
			c.Sent[n-1].To = t.records[s.index]
		default:
			c.Sent = append(c.Sent, trajectories.ContextPart{From: t.records[s.index], To: t.records[s.index]})
		}
		previous = s.index
		if s.index < 0 {
			previous = -2
		}
	}
	if whole {
		return nil
	}
	return c
}

// commandBlock matches a command in the text of a reply.
var commandBlock = lazyregexp.New("(?s)```(?:bash|sh|shell|mswea_bash_command)\\s*\\n(.*?)\\n?```")

// actionsOf returns the commands of a reply: those of its tool calls, or else the one in
// its text. Agents refuse texts with several commands.
func actionsOf(m model.Message) (commands []string) {
	for _, c := range m.ToolCalls {
		commands = append(commands, commandOf(c))
	}
	if blocks := commandBlock.FindAllStringSubmatch(m.Content, 2); len(commands) == 0 && len(blocks) == 1 {
		commands = append(commands, strings.TrimSpace(blocks[0][1]))
	}
	return commands
}

// commandOf returns the command of a call, or for a tool without a command its name and
// arguments.
func commandOf(c model.ToolCall) string {
	var arguments map[string]json.RawMessage
	_ = json.Unmarshal([]byte(c.Arguments), &arguments) // other arguments have no command
	for _, name := range []string{"command", "cmd"} {
		var text string
		var words []string
		if json.Unmarshal(arguments[name], &text) == nil && text != "" {
			return text
		}
		if json.Unmarshal(arguments[name], &words) == nil && len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return c.Name + " " + c.Arguments
}
