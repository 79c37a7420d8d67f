package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/minibench/mini/model/transport"
)

// receive puts a streamed answer together. The data of an event says what it
// is, so its name is not needed: some proxies lose it. Beside an error it says
// what the answer had taken by then. Pieces are told of as they come.
func receive(body io.Reader, told *transport.Pieces) (json.RawMessage, sdk.Usage, error) {
	f := fold{told: teller{Pieces: told}}
	raw, err := f.receive(bufio.NewReader(body))
	return raw, f.message.Usage, err
}

func (f *fold) receive(in *bufio.Reader) (json.RawMessage, error) {
	for {
		line, err := in.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok && (err == nil || errors.Is(err, io.EOF)) {
			done, err := f.add(bytes.TrimSpace(data))
			if err != nil {
				return nil, err
			}
			if done {
				return f.json()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, broken("the stream ended before the answer did (no message_stop)")
		case err != nil:
			return nil, fmt.Errorf("read stream: %w", err)
		}
	}
}

// fold makes one message of the events of a stream.
type fold struct {
	message sdk.Message
	started bool
	// growing are the blocks that are not complete, by index: the library joins
	// strings part by part, at a cost that grows with their square.
	growing map[int64]*growing
	// torn are the arguments of calls that are no JSON, by block. The library
	// drops these; who wrote them is to be told.
	torn map[int64]string
	told teller
}

// add takes the data of the next event, and says whether it was the last one.
func (f *fold) add(data []byte) (done bool, err error) {
	var kind struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	switch err := json.Unmarshal(data, &kind); {
	case len(data) == 0:
		return false, nil
	case err != nil:
		return false, broken("read event: %w", err)
	case kind.Type == "error" || len(kind.Error) > 0:
		*f = fold{} // who says that he failed charges for nothing
		return false, failed(data)
	case kind.Type == "ping":
		return false, nil
	case kind.Type == "message_start":
		f.told.Restart()
		*f = fold{started: true, told: teller{Pieces: f.told.Pieces}}
	case !f.started:
		return false, foreign("the stream begins with %.40q", kind.Type)
	}
	var event sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &event); err != nil {
		return false, broken("read event: %w", err)
	}
	switch kind.Type {
	case "content_block_start":
		if f.growing == nil {
			f.growing = map[int64]*growing{}
		}
		f.growing[event.Index] = &growing{}
		f.told.begin(event.ContentBlock.Type, event.ContentBlock.Text, event.ContentBlock.Thinking)
	case "content_block_delta":
		g := f.growing[event.Index]
		if g == nil {
			return false, broken("put stream together: block %d goes on, and was not begun", event.Index)
		}
		if g.add(event.Delta) {
			f.told.goOn(event.Delta.Text, event.Delta.Thinking)
			return false, nil
		}
	case "content_block_stop":
		err = f.complete(event.Index)
	case "message_stop": // blocks may still be open
		for index := range f.growing {
			err = errors.Join(err, f.complete(index))
		}
	}
	if err = errors.Join(err, f.message.Accumulate(event)); err != nil {
		return false, broken("put stream together: %w", err)
	}
	return kind.Type == "message_stop", nil
}

// teller tells of texts as they come, with what stands between them in the
// reply (see messageOf).
type teller struct {
	*transport.Pieces
	before         string // the type of the newest block
	spoke, thought bool
	gap            string // before what comes next
}

// begin is told of a new block.
func (t *teller) begin(kind, text, thinking string) {
	t.gap = ""
	if kind == "text" && t.spoke && t.before != "text" || kind == "thinking" && t.thought {
		t.gap = "\n\n"
	}
	t.before = kind
	t.goOn(text, thinking)
}

// goOn is told of the next part of a block.
func (t *teller) goOn(text, thinking string) {
	if text != "" {
		t.Text(t.gap + text)
		t.spoke, t.gap = true, ""
	}
	if thinking != "" {
		t.Reasoning(t.gap + thinking)
		t.thought, t.gap = true, ""
	}
}

// growing is what came of a block's texts.
type growing struct{ text, thinking, input, signature strings.Builder }

// add takes a part of a text, and says whether it was one.
func (g *growing) add(d sdk.MessageStreamEventUnionDelta) bool {
	switch d.Type {
	case "text_delta":
		g.text.WriteString(d.Text)
	case "thinking_delta":
		g.thinking.WriteString(d.Thinking)
	case "input_json_delta":
		g.input.WriteString(d.PartialJSON)
	case "signature_delta":
		g.signature.WriteString(d.Signature)
	default:
		return false
	}
	return true
}

// complete gives a block what came of its texts.
func (f *fold) complete(index int64) error {
	g := f.growing[index]
	if g == nil {
		return fmt.Errorf("block %d ends, and was not begun", index)
	}
	delete(f.growing, index)
	event := sdk.MessageStreamEventUnion{Type: "content_block_delta", Index: index}
	for kind, part := range map[string]*strings.Builder{
		"text_delta": &g.text, "thinking_delta": &g.thinking, "input_json_delta": &g.input, "signature_delta": &g.signature,
	} {
		if part.Len() == 0 {
			continue
		}
		text := part.String()
		event.Delta = sdk.MessageStreamEventUnionDelta{Type: kind, Text: text, Thinking: text, PartialJSON: text, Signature: text}
		if err := f.message.Accumulate(event); err != nil {
			return err
		}
	}
	f.keepTorn(index)
	return nil
}

func (f *fold) keepTorn(index int64) {
	if input := f.message.Content[index].Input; len(input) > 0 && !json.Valid(input) {
		if f.torn == nil {
			f.torn = map[int64]string{}
		}
		f.torn[index] = string(input)
	}
}

// json is the message as it would have come in one piece. Arguments that are
// no JSON stand in it as a string.
func (f *fold) json() (json.RawMessage, error) {
	raw := json.RawMessage(f.message.RawJSON())
	if len(f.torn) == 0 {
		return raw, nil
	}
	var whole map[string]json.RawMessage
	var content []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, broken("put stream together: %w", err)
	}
	if err := json.Unmarshal(whole["content"], &content); err != nil {
		return nil, broken("put stream together: %w", err)
	}
	for index, input := range f.torn {
		if int(index) >= len(content) {
			return nil, broken("put stream together: block %d is missing", index)
		}
		text, err := json.Marshal(input)
		if err != nil {
			return nil, fmt.Errorf("put stream together: %w", err)
		}
		content[index]["input"] = text
	}
	var err error
	if whole["content"], err = json.Marshal(content); err == nil {
		raw, err = json.Marshal(whole)
	}
	if err != nil {
		return nil, fmt.Errorf("put stream together: %w", err)
	}
	return raw, nil
}

// failed makes the error of an error object that came within a stream or an
// answer, whose type stands for the status that it would have had.
func failed(object []byte) error {
	d := transport.ParseDetail(object)
	return transport.Classify(statuses[d.Code], d)
}

var statuses = map[string]int{
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,
}
