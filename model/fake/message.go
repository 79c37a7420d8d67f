package fake

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// message is a reply in an API-independent form.
type message struct {
	id       string
	created  time.Time
	model    string
	thinking string
	text     string
	calls    []toolCall
	finish   model.FinishReason // "" if missing
	usage    *model.Usage       // as reported; nil if missing
	cost     model.Cost
	// usageEvent is set if the last event of an OpenAI stream is the usage,
	// reportCost if the usage includes the cost.
	usageEvent, reportCost bool
}

// toolCall is a tool call. arguments should be JSON.
type toolCall struct {
	id, name, arguments string
	fromScript          bool // the script gives the id
}

// idWithPrefix returns the call's id; an id that the script does not give gets prefix.
func (c toolCall) idWithPrefix(prefix string) string {
	if c.fromScript {
		return c.id
	}
	return prefix + c.id
}

// commandBlock matches a command in a reply.
var commandBlock = lazyregexp.New("(?s)```(?:bash|sh|shell)\\s*\\n(.*?)\\n?```")

// newMessage converts the script's reply to the message that answers a request.
func newMessage(reply model.Reply, r *request, number int) *message {
	m := &message{
		id: fakeID(number), created: time.Now(), model: r.model,
		text: reply.Message.Content, finish: reply.FinishReason, cost: reply.Cost,
		usageEvent: r.usageEvent, reportCost: r.cost,
	}
	if !r.needsMark || r.thinking {
		m.thinking = reply.Message.Reasoning
	}
	switch {
	case r.tool != "" && len(reply.Message.ToolCalls) > 0:
		m.addCalls(reply.Message.ToolCalls)
	case r.tool != "":
		m.extractCalls(r.tool)
	default:
		m.inlineCalls(reply.Message.ToolCalls)
	}
	usage := reply.Usage
	if usage == (model.Usage{}) {
		usage = r.usage()
		usage.Reasoning = tokens(len(m.thinking))
		usage.Completion = usage.Reasoning + tokens(m.bytes())
	}
	m.usage = &usage
	return m
}

// extractCalls turns the commands in the text into calls of a tool.
func (m *message) extractCalls(name string) {
	matches := commandBlock.FindAllStringSubmatchIndex(m.text, -1)
	if len(matches) == 0 {
		return
	}
	for i, match := range matches {
		arguments := jsonOf(map[string]string{"command": m.text[match[2]:match[3]]}, "")
		m.calls = append(m.calls, toolCall{id: fmt.Sprintf("%s_%d", m.id, i), name: name, arguments: string(arguments)})
	}
	m.text = strings.TrimSpace(m.text[:matches[0][0]])
}

// addCalls adds the script's tool calls, valid or not.
func (m *message) addCalls(calls []model.ToolCall) {
	for i, c := range calls {
		call := toolCall{c.ID, c.Name, c.Arguments, c.ID != ""}
		if !call.fromScript {
			call.id = fmt.Sprintf("%s_%d", m.id, i)
		}
		m.calls = append(m.calls, call)
	}
}

// inlineCalls adds the script's tool calls to the text as one bash block, for
// requests without a tool for commands. Calls without a command are dropped.
func (m *message) inlineCalls(calls []model.ToolCall) {
	var commands []string
	for _, c := range calls {
		var arguments struct {
			Command string `json:"command"`
		}
		if json.Unmarshal([]byte(c.Arguments), &arguments) == nil && arguments.Command != "" {
			commands = append(commands, arguments.Command)
		}
	}
	if len(commands) > 0 {
		m.text = strings.TrimSpace(m.text + "\n\n```bash\n" + strings.Join(commands, "\n") + "\n```")
	}
}

// bytes returns the size of the reply without its thinking.
func (m *message) bytes() int {
	n := len(m.text)
	for _, c := range m.calls {
		n += len(c.arguments)
	}
	return n
}

// object is a JSON object with ordered fields: names and values alternate.
type object []any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := 0; i < len(o); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, jsonOf(o[i], "")...), ':'), jsonOf(o[i+1], "")...)
	}
	return append(b, '}'), nil
}

// event returns an event of a stream. OpenAI's events have no names.
func event(name string, v any) []byte {
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	fmt.Fprintf(&b, "data: %s\n\n", jsonOf(v, ""))
	return b.Bytes()
}

// jsonOf encodes v without escaping <, > and &, as providers do.
func jsonOf(v any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode reply: %v", err)) // only this package's types
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

const (
	pieceBytes = 16 // usual size of a stream's deltas, in bytes
	maxPieces  = 64 // approximate: longer texts are sent in larger deltas
)

// pieces splits a text for streaming, between characters.
func pieces(text string) []string {
	var all []string
	size := max(pieceBytes, len(text)/maxPieces)
	for len(text) > 0 {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// fakeID returns an id made of the number of a request.
func fakeID(number int) string { return fmt.Sprintf("fake%08d", number) }
