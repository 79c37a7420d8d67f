package formats

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/model"
)

// turn is a message of a conversation: in the form of chat completions, in that of OpenAI's
// Responses API, or with the names that some datasets give to the role and the content. The
// fields without a JSON name are those that parseTurn makes of the others.
type turn struct {
	Role         model.Role       `json:"role"` // "exit" for the last message of mini-swe-agent 2
	RawContent   json.RawMessage  `json:"content"`
	From         lenient[string]  `json:"from"`
	Value        lenient[string]  `json:"value"`
	Text         lenient[string]  `json:"text"`
	SystemPrompt lenient[string]  `json:"system_prompt"`
	Reasoning    string           `json:"reasoning_content"`
	FileCalls    []fileCall       `json:"tool_calls"`
	CallID       string           `json:"tool_call_id"`
	Timestamp    *float64         `json:"timestamp"` // mini-swe-agent 1
	ProviderData json.RawMessage  `json:"kept"`      // model.Message.ProviderData; only mini writes it
	Extra        turnExtra        `json:"extra"`
	Type         string           `json:"type"`   // "function_call_output" for an observation of the Responses API
	Object       string           `json:"object"` // "response" for a reply of the Responses API
	Output       json.RawMessage  `json:"output"`
	AnsweredID   string           `json:"call_id"`
	Raw          json.RawMessage  `json:"-"` // the message in the file
	Content      string           `json:"-"` // the text parts
	Calls        []model.ToolCall `json:"-"`
	Commands     []string         `json:"-"` // of a reply
	Result       *result          `json:"-"` // of a command; nil if the message has none
	Time         time.Time        `json:"-"` // zero if unknown
}

// turnExtra is the extra data of a message, which mini-swe-agent 2 writes.
type turnExtra struct {
	Actions []struct {
		Command *string `json:"command"`
		CallID  string  `json:"tool_call_id"`
	} `json:"actions"`
	Timestamp  *float64 `json:"timestamp"`
	RawOutput  *string  `json:"raw_output"`
	ReturnCode *int     `json:"returncode"`
	Exception  *string  `json:"exception_info"`
	// Interrupt is the interrupt type of a message that is not a command's output, such
	// as "FormatError".
	Interrupt string `json:"interrupt_type"`

	TimedOut      lenient[bool]    `json:"timed_out"` // only in files that mini wrote
	Cause         lenient[string]  `json:"cause"`     // only in files that mini wrote
	ExceptionType lenient[string]  `json:"exception_type"`
	Response      json.RawMessage  `json:"response"`
	Model         lenient[string]  `json:"model"`
	Cost          lenient[float64] `json:"cost"`
	ModelResponse json.RawMessage  `json:"model_response"`
	Status        lenient[string]  `json:"exit_status"`
	Submission    lenient[string]  `json:"submission"`
}

// hasResult reports whether the extra data has the result of a command.
func (e *turnExtra) hasResult() bool { return e.RawOutput != nil || e.ReturnCode != nil }

// result is the result of a command.
type result struct {
	Output    *string // nil if the text of the message has only a part of the output
	ExitCode  *int    // nil if unknown
	Exception string
}

// lenient is an optional value. Decoding ignores a value of another type.
type lenient[T any] struct {
	value T
	set   bool // the file has a value of type T
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(data []byte) error {
	l.set = string(data) != "null" && json.Unmarshal(data, &l.value) == nil
	return nil
}

// parseTurns decodes messages. actions finds the commands in the text of replies.
func parseTurns(list []json.RawMessage, actions *regexp.Regexp) ([]turn, error) {
	turns := make([]turn, len(list))
	for i, raw := range list {
		var err error
		if turns[i], err = parseTurn(raw, actions); err != nil {
			return nil, explainJSON(fmt.Errorf("messages[%d]%w", i, err))
		}
	}
	return turns, nil
}

// defaultActions finds the actions of mini-swe-agent 1.
var defaultActions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?s)```(?:bash|mswea_bash_command)\\s*\\n(.*?)\\n```")
})

// otherRoles are the names that some datasets give to roles.
var otherRoles = map[model.Role]model.Role{"ai": model.Assistant, "gpt": model.Assistant, "human": model.User}

// parseTurn decodes a message. Its errors begin with the position in the message
// (".content: ..."), to which the caller adds the position of the message.
func parseTurn(raw json.RawMessage, actions *regexp.Regexp) (turn, error) {
	t := turn{Raw: raw}
	if err := json.Unmarshal(raw, &t); err != nil {
		return turn{}, fmt.Errorf(": %w", err)
	}
	var err error
	switch {
	case t.Role != "":
	case t.Object == "response":
		t.Role = model.Assistant
		err = t.convertReply()
	case t.Type == "function_call_output":
		t.Role, t.CallID, t.RawContent = model.Tool, t.AnsweredID, t.Output
	default:
		if t.Role = model.Role(t.From.value); t.Role == "" {
			err = errors.New(": role is missing")
		}
	}
	if err != nil {
		return turn{}, err
	}
	if t.Role = cmp.Or(otherRoles[t.Role], t.Role); len(t.RawContent) > 0 {
		if t.Content, err = contentText(t.RawContent); err != nil {
			return turn{}, fmt.Errorf(".content: %w", err)
		}
	}
	t.Content = cmp.Or(t.Content, t.Text.value, t.Value.value, t.SystemPrompt.value)
	for _, stamp := range []*float64{t.Timestamp, t.Extra.Timestamp} { // in seconds; the latter wins
		if stamp != nil && math.Abs(*stamp) < 1e11 {
			t.Time = time.UnixMicro(int64(*stamp * 1e6)).UTC()
		}
	}
	switch e := &t.Extra; {
	case e.hasResult():
		t.Result = &result{Output: e.RawOutput, ExitCode: e.ReturnCode}
		if e.Exception != nil {
			t.Result.Exception = *e.Exception
		}
	case e.Interrupt != "":
	case t.Role == model.Tool:
		content := t.Content
		t.Result = &result{Output: &content}
	case t.Role == model.User:
		t.Result = resultFromText(t.Content)
	}
	if t.Role == model.Assistant {
		t.Calls = toolCalls(t.FileCalls)
		err = t.setCommands(actions)
	}
	return t, err
}

// contentText returns the text of a content, which is a string, null or a list of parts, as
// in chat completions.
func contentText(content json.RawMessage) (string, error) {
	var text string
	if len(content) == 0 {
		return "", nil
	}
	if content[0] != '[' {
		err := json.Unmarshal(content, &text)
		return text, err
	}
	var parts []struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text, err
}

// setCommands sets the commands of a reply: those in its tool calls; if it has no tool
// calls, its recorded actions; if these are missing, the only command in its text. Recorded
// actions take precedence over tool calls if the agent parsed the actions from the calls,
// since a call with a command may be of a tool that is not a shell.
func (t *turn) setCommands(pattern *regexp.Regexp) error {
	recorded := t.Extra.Actions
	fromCalls := recorded != nil && len(recorded) == 0
	for _, a := range recorded {
		fromCalls = fromCalls || a.CallID != ""
	}
	if len(t.Calls) > 0 && !fromCalls {
		for _, call := range t.Calls {
			if command, _ := shellCommand(call); command != nil {
				t.Commands = append(t.Commands, *command)
			}
		}
		return nil
	}
	for i, a := range recorded {
		if a.Command == nil {
			return fmt.Errorf(".extra.actions[%d]: command is missing", i)
		}
		t.Commands = append(t.Commands, *a.Command)
	}
	if recorded != nil {
		return nil
	}
	if matches := pattern.FindAllStringSubmatch(t.Content, 2); len(matches) == 1 {
		t.Commands = []string{strings.TrimSpace(matches[0][1])}
	}
	return nil
}

// resultFromText returns the result in an observation that has the format of the template
// of mini-swe-agent 1, or nil.
func resultFromText(text string) *result {
	beforeTag, rest, found := strings.Cut(text, "</returncode>")
	code, hasTag := strings.CutPrefix(strings.TrimSpace(beforeTag), "<returncode>")
	if !found || !hasTag {
		return nil
	}
	r := &result{}
	exitCode := 0
	if _, err := fmt.Sscanf(code, "%d", &exitCode); err == nil {
		r.ExitCode = &exitCode
	}
	rest, found = strings.CutPrefix(strings.TrimLeft(rest, "\n"), "<output>\n")
	if end := strings.LastIndex(rest, "</output>"); found && end >= 0 {
		output := rest[:end]
		r.Output = &output
	}
	return r
}

// convertReply sets the text, the reasoning and the tool calls of a reply of the Responses
// API from its output items.
func (t *turn) convertReply() error {
	var items []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
		Summary json.RawMessage `json:"summary"`
		fileCall
	}
	if len(t.Output) > 0 {
		if err := json.Unmarshal(t.Output, &items); err != nil {
			return fmt.Errorf(".output: %w", err)
		}
	}
	content := ""
	t.Reasoning = ""
	for i, item := range items {
		text, err := contentText(item.Content)
		summary, summaryErr := contentText(item.Summary)
		switch item.Type {
		case "message":
			content, summaryErr = content+text, nil
		case "reasoning":
			t.Reasoning += summary + text
		case "function_call":
			t.FileCalls = append(t.FileCalls, item.fileCall)
			continue
		default:
			continue
		}
		if err = cmp.Or(summaryErr, err); err != nil {
			return fmt.Errorf(".output[%d]: %w", i, err)
		}
	}
	var err error
	t.RawContent, err = json.Marshal(content)
	return err
}

// fileCall is a tool call in a file. Formats differ in the names of its fields.
type fileCall struct {
	ID         string          `json:"id"`
	CallID     string          `json:"call_id"`      // OpenAI's Responses API
	ToolCallID string          `json:"tool_call_id"` // ATIF
	Name       string          `json:"name"`
	ToolName   string          `json:"function_name"` // ATIF
	Arguments  json.RawMessage `json:"arguments"`     // a string with JSON, or an object
	Function   struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func (c fileCall) toolCall() model.ToolCall {
	call := model.ToolCall{ID: cmp.Or(c.CallID, c.ToolCallID, c.ID), Name: cmp.Or(c.Name, c.ToolName, c.Function.Name)}
	raw := c.Arguments
	if len(raw) == 0 {
		raw = c.Function.Arguments
	}
	if json.Unmarshal(raw, &call.Arguments) != nil {
		call.Arguments = string(raw)
	}
	return call
}

func toolCalls(list []fileCall) []model.ToolCall {
	var calls []model.ToolCall
	for _, c := range list {
		calls = append(calls, c.toolCall())
	}
	return calls
}

// shellCommand returns the command in the arguments of a tool call, or nil. isInput is set
// if it is input to a running process.
func shellCommand(c model.ToolCall) (command *string, isInput bool) {
	var args struct {
		Command *string         `json:"command"`
		Input   json.RawMessage `json:"is_input"`
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil { // the model may have written invalid JSON
		return nil, false
	}
	return args.Command, isTrue(args.Input)
}

// isTrue reports whether a JSON value is true, or a string with it.
func isTrue(raw json.RawMessage) bool { return string(raw) == "true" || string(raw) == `"true"` }

// images returns the embedded images in the content of a message. It adds losses for parts
// that are neither text nor an embedded image, and for several text parts.
func (b *builder) images(content json.RawMessage) []model.Image {
	var parts []struct {
		Type string          `json:"type"`
		URL  json.RawMessage `json:"image_url"`
		Text *string         `json:"text"`
	}
	if len(content) == 0 || content[0] != '[' || json.Unmarshal(content, &parts) != nil {
		return nil
	}
	var images []model.Image
	texts := 0
	for _, p := range parts {
		if p.Text != nil {
			texts++
			continue
		}
		var inner struct {
			URL string `json:"url"`
		}
		url := asString(p.URL)
		if json.Unmarshal(p.URL, &inner) == nil && inner.URL != "" {
			url = inner.URL
		}
		if image, ok := decodeDataURL(url); ok {
			images = append(images, image)
		} else {
			b.addLoss("a message part that is neither text nor an embedded image", 1)
		}
	}
	if texts > 1 {
		b.addLoss("a content with several text parts was joined", 1)
	}
	return images
}

// decodeDataURL decodes an image in a data URL.
func decodeDataURL(url string) (model.Image, bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	mediaType, data, hasData := strings.Cut(rest, ";base64,")
	if !ok || !hasData || !strings.HasPrefix(mediaType, "image/") {
		return model.Image{}, false
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	return model.Image{MediaType: mediaType, Data: raw}, err == nil
}
