package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// modelReply is a reply of a model in a script.
type modelReply struct {
	text     string   // the server adds "Reply N: " before it, which tells it later what comes next
	commands []string // in the form of the scenario's protocol
	calls    []modelCall
	thinking string
	// fields are added to an OpenAI message.
	fields map[string]any
	// finish replaces the reason why the reply ended: "length" or "max_tokens".
	finish string
	// faults are the responses to the first requests for this reply.
	faults []modelFault
	// noUsage leaves the token counts out.
	noUsage bool
}

// modelCall is a tool call as the model wrote it.
type modelCall struct{ id, name, arguments string }

// modelFault is the response to a request that fails.
type modelFault struct {
	status  int
	message string
}

// modelServer answers the requests of a scenario from its script and records their bodies.
// The next reply depends on the conversation alone: it follows the reply with the highest
// number that the request ends with. So a resumed attempt gets the same replies.
type modelServer struct {
	*httptest.Server
	t        testing.TB
	scenario *requestScenario
	dir      string // of the scenario

	mu     sync.Mutex
	bodies map[int][]string // of each copy of the attempt; see copyMark
	asked  map[askedReply]int
	held   bool // a request was held
}

// askedReply is a reply to a copy of the attempt or to a subagent.
type askedReply struct {
	number int
	agent  string
	reply  int
}

func newModelServer(t testing.TB, s *requestScenario, dir string) *modelServer {
	m := &modelServer{t: t, scenario: s, dir: dir, bodies: map[int][]string{}, asked: map[askedReply]int{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

var (
	copyMark    = regexp.MustCompile(`\bcopy (\d\d)\b`) // in the task of a batch
	replyMark   = regexp.MustCompile(`\bReply (\d+):`)
	summaryPart = regexp.MustCompile(`=== Part (\d+): (steps \d+ to \d+) ===`)
	// machineMark matches what the prompt of a subagent says about this machine.
	machineMark = regexp.MustCompile(`You are in [^,]*, on [^()]*\([^()]*\)`)
)

// mask replaces what differs between machines and between copies.
func mask(body string) string {
	return machineMark.ReplaceAllString(copyMark.ReplaceAllString(body, "copy 00"), "You are in FOLDER, on SYSTEM")
}

// ServeHTTP implements http.Handler for OpenAI's and Anthropic's APIs.
func (m *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reply, fault := m.next(string(data))
	wire := wireReply{w: w, protocol: m.scenario.protocol, modelReply: reply, tokens: len(mask(string(data))) / 4, stream: strings.Contains(string(data), `"stream":true`)}
	switch {
	case fault != nil && *fault == held:
		if err := os.WriteFile(filepath.Join(m.dir, "held"), nil, 0o600); err != nil {
			m.t.Error(err)
		}
		<-r.Context().Done()
	case fault != nil:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After-Ms", "1")
		w.WriteHeader(fault.status)
		wire.write(map[string]any{"error": map[string]any{"message": fault.message}})
	case strings.HasSuffix(r.URL.Path, "/messages"):
		wire.anthropic()
	default:
		wire.openAI()
	}
}

// take returns the bodies of a copy so far, and forgets them and its faults.
func (m *modelServer) take(number int) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	bodies := m.bodies[number]
	delete(m.bodies, number)
	maps.DeleteFunc(m.asked, func(key askedReply, _ int) bool { return key.number == number })
	return bodies
}

// next records a request and returns its reply or fault.
func (m *modelServer) next(body string) (modelReply, *modelFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number := 0
	if mark := copyMark.FindStringSubmatch(body); mark != nil {
		number, _ = strconv.Atoi(mark[1])
	}
	m.bodies[number] = append(m.bodies[number], mask(body))
	name, script, n := "", m.scenario.replies, 1
	switch {
	case strings.Contains(body, summaryMark):
		return m.summary(body, number)
	case !strings.Contains(body, mainMark):
		if name, script = m.child(body); name == "" {
			return modelReply{}, m.unexpected("a request of no agent", body)
		}
	}
	if marks := replyMark.FindAllStringSubmatch(body, -1); marks != nil {
		last, _ := strconv.Atoi(marks[len(marks)-1][1])
		n = last + 1
	}
	if n > len(script) {
		return modelReply{}, m.unexpected(fmt.Sprintf("a request for reply %d of %d", n, len(script)), body)
	}
	reply := script[n-1]
	key := askedReply{number, name, n}
	if m.asked[key]++; m.asked[key] <= len(reply.faults) {
		fault := &reply.faults[m.asked[key]-1]
		if *fault != held {
			return reply, fault
		}
		if !m.held { // a resumed attempt has no user who interrupts it
			m.held = true
			return reply, fault
		}
	}
	reply.text = fmt.Sprintf("Reply %d: %s", n, reply.text)
	reply.commands = slices.Clone(reply.commands)
	for i, command := range reply.commands {
		command = copyMark.ReplaceAllString(command, fmt.Sprintf("copy %02d", number)) // in the task of a subagent
		reply.commands[i] = command
		reply.calls = append(reply.calls, modelCall{fmt.Sprintf("call-%s%d-%d", name, n, i+1), "bash", jsonText(map[string]string{"command": command})})
	}
	return reply, nil
}

func (m *modelServer) child(body string) (string, []modelReply) {
	for name, script := range m.scenario.children {
		if strings.Contains(body, name) {
			return name, script
		}
	}
	return "", nil
}

// summary returns the summaries of the parts in a prompt.
func (m *modelServer) summary(body string, number int) (modelReply, *modelFault) {
	key := askedReply{number, "summary", 0}
	if m.asked[key]++; m.asked[key] <= len(m.scenario.summaryFaults) {
		return modelReply{}, &m.scenario.summaryFaults[m.asked[key]-1]
	}
	var text strings.Builder
	for _, part := range summaryPart.FindAllStringSubmatch(body, -1) {
		fmt.Fprintf(&text, "=== Part %s ===\nWhat happened in %s.\n", part[1], part[2])
	}
	return modelReply{text: text.String()}, nil
}

// unexpected fails the test, and the attempt too.
func (m *modelServer) unexpected(problem, body string) *modelFault {
	m.t.Errorf("%s: %s: %s", m.scenario.name, problem, body)
	return &modelFault{http.StatusUnauthorized, problem}
}

// wireReply writes a reply in the form of an API.
type wireReply struct {
	modelReply
	w        http.ResponseWriter
	protocol string
	tokens   int
	stream   bool
}

// content returns the text of a reply, with its commands unless they are tool calls.
func (r wireReply) content() string {
	text := r.text
	for _, command := range r.commands {
		switch r.protocol {
		case "text":
			text += "\n\n```bash\n" + command + "\n```"
		case "xml":
			text += "\n\n<bash>\n" + command + "\n</bash>"
		}
	}
	return text
}

func (r wireReply) openAI() {
	message, finish := map[string]any{"role": "assistant", "content": r.content()}, "stop"
	if r.thinking != "" {
		message["reasoning_content"] = r.thinking
	}
	maps.Copy(message, r.fields)
	var calls []any
	if r.protocol == "tools" {
		for i, c := range r.calls {
			calls = append(calls, map[string]any{"index": i, "id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.arguments}})
		}
	}
	if calls != nil {
		message["tool_calls"], finish = calls, "tool_calls"
	}
	if r.finish != "" {
		finish = r.finish
	}
	usage := map[string]any{"prompt_tokens": r.tokens, "completion_tokens": 10}
	if r.noUsage {
		usage = nil
	}
	if !r.stream {
		r.write(map[string]any{"model": "m", "choices": []any{map[string]any{"message": message, "finish_reason": finish}}, "usage": usage})
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	delta := func(fields map[string]any, finish any) {
		r.event("", map[string]any{"model": "m", "choices": []any{map[string]any{"index": 0, "delta": fields, "finish_reason": finish}}})
	}
	content := r.content()
	delta(map[string]any{"role": "assistant", "content": content[:len(content)/2]}, nil)
	message["content"] = content[len(content)/2:]
	delta(message, nil)
	delta(map[string]any{}, finish)
	if usage != nil {
		r.event("", map[string]any{"choices": []any{}, "usage": usage})
	}
	_, _ = io.WriteString(r.w, "data: [DONE]\n\n")
}

func (r wireReply) anthropic() {
	var blocks []map[string]any
	if r.thinking != "" {
		blocks = append(blocks, map[string]any{"type": "thinking", "thinking": r.thinking, "signature": "signed"})
	}
	blocks = append(blocks, map[string]any{"type": "text", "text": r.content()})
	finish := "end_turn"
	if r.protocol == "tools" {
		for _, c := range r.calls {
			blocks, finish = append(blocks, map[string]any{"type": "tool_use", "id": c.id, "name": c.name, "input": json.RawMessage(c.arguments)}), "tool_use"
		}
	}
	if r.finish != "" {
		finish = r.finish
	}
	usage := map[string]any{"input_tokens": r.tokens, "output_tokens": 10}
	if !r.stream {
		r.write(map[string]any{"type": "message", "role": "assistant", "model": "m", "content": blocks, "stop_reason": finish, "usage": usage})
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.event("message_start", map[string]any{"message": map[string]any{"type": "message", "role": "assistant", "model": "m", "content": []any{}, "usage": usage}})
	for i, b := range blocks {
		r.block(i, b)
	}
	r.event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": finish}, "usage": map[string]any{"output_tokens": 10}})
	r.event("message_stop", map[string]any{})
}

// block sends a content block in parts.
func (r wireReply) block(index int, b map[string]any) {
	begin, deltas := maps.Clone(b), []map[string]any(nil)
	switch b["type"] {
	case "thinking":
		begin["thinking"], begin["signature"] = "", ""
		deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": b["thinking"]}, map[string]any{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		begin["text"] = ""
		deltas = append(deltas, map[string]any{"type": "text_delta", "text": b["text"]})
	case "tool_use":
		begin["input"] = map[string]any{}
		deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": jsonText(b["input"])})
	}
	r.event("content_block_start", map[string]any{"index": index, "content_block": begin})
	for _, d := range deltas {
		r.event("content_block_delta", map[string]any{"index": index, "delta": d})
	}
	r.event("content_block_stop", map[string]any{"index": index})
}

// event sends an event of a stream.
func (r wireReply) event(kind string, v map[string]any) {
	if kind != "" {
		v["type"] = kind
		kind = "event: " + kind + "\n"
	}
	_, _ = io.WriteString(r.w, kind+"data: "+jsonText(v)+"\n\n")
}

func (r wireReply) write(v map[string]any) {
	r.w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(r.w, jsonText(v))
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
