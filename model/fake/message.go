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

// message is a reply, before it takes the form of an API.
type message struct {
	id       string
	created  time.Time
	model    string
	thinking string
	text     string
	calls    []toolCall
	finish   model.Finish // "" is none
	usage    *model.Usage // as told; nil is none
	cost     model.Cost
	// usageEvent and costTold say what the client wants to be told.
	usageEvent, costTold bool
}

// toolCall is the call of a tool; arguments are JSON, or should be.
type toolCall struct {
	id, name, arguments string
	given               bool // the id is the script's, and goes out as it is
}

// as is the id of a call in the form of an API.
func (c toolCall) as(prefix string) string {
	if c.given {
		return c.id
	}
	return prefix + c.id
}

// block finds the commands in a reply.
var block = lazyregexp.New("(?s)```(?:bash|sh|shell)\\s*\\n(.*?)\\n?```")

// newMessage makes what the script says into a reply to a request.
func newMessage(reply model.Reply, r *request, number int) *message {
	m := &message{
		id: fakeID(number), created: time.Now(), model: r.model,
		text: reply.Message.Content, finish: reply.Finish, cost: reply.Cost,
		usageEvent: r.usageEvent, costTold: r.cost,
	}
	if !r.needsMark || r.thinking {
		m.thinking = reply.Message.Reasoning
	}
	switch {
	case r.tool != "" && len(reply.Message.Calls) > 0:
		m.callAs(reply.Message.Calls)
	case r.tool != "":
		m.call(r.tool)
	default:
		m.spell(reply.Message.Calls)
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

// call makes the commands of the text calls of a tool.
func (m *message) call(name string) {
	found := block.FindAllStringSubmatchIndex(m.text, -1)
	if len(found) == 0 {
		return
	}
	for i, at := range found {
		arguments := jsonOf(map[string]string{"command": m.text[at[2]:at[3]]}, "")
		m.calls = append(m.calls, toolCall{id: fmt.Sprintf("%s_%d", m.id, i), name: name, arguments: string(arguments)})
	}
	m.text = strings.TrimSpace(m.text[:found[0][0]])
}

// callAs makes the calls that the script spells out, right or wrong.
func (m *message) callAs(calls []model.Call) {
	for i, c := range calls {
		call := toolCall{c.ID, c.Name, c.Arguments, c.ID != ""}
		if !call.given {
			call.id = fmt.Sprintf("%s_%d", m.id, i)
		}
		m.calls = append(m.calls, call)
	}
}

// spell says the script's calls as one block of commands, for who offers no
// tools. One without a command is left out.
func (m *message) spell(calls []model.Call) {
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

func (m *message) bytes() int {
	n := len(m.text)
	for _, c := range m.calls {
		n += len(c.arguments)
	}
	return n
}

// part is a piece of an answer.
type part struct{ data []byte }

// object is a JSON object whose fields keep their order: names and values in
// turn.
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

// event is an event of a stream, with a name where the API has names.
func event(name string, v any) part {
	var b bytes.Buffer
	if name != "" {
		fmt.Fprintf(&b, "event: %s\n", name)
	}
	fmt.Fprintf(&b, "data: %s\n\n", jsonOf(v, ""))
	return part{data: b.Bytes()}
}

// jsonOf writes JSON as providers do: <, > and & are themselves.
func jsonOf(v any, indent string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a reply that is no JSON: %v", err)) // of this package's own types
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

const (
	pieceBytes = 16 // of a stream's pieces
	maxPieces  = 64 // longer texts come in longer pieces
)

// pieces cuts a text as a stream does, not within characters.
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

// fakeID is the number of a request as part of ids.
func fakeID(number int) string { return fmt.Sprintf("fake%08d", number) }
