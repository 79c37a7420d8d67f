package anthropic

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// receive assembles a streamed message and sends its texts to deltas. With an
// error it returns the usage reported so far.
func receive(events iter.Seq2[[]byte, error], deltas *transport.DeltaWriter) (json.RawMessage, model.Usage, error) {
	f := accumulator{deltas: blockDeltas{DeltaWriter: deltas}}
	for data, err := range events {
		done := false
		if err == nil {
			done, err = f.add(data)
		}
		if err != nil {
			return nil, f.usage(), err
		}
		if done {
			return f.json(), f.usage(), nil
		}
	}
	return nil, f.usage(), transport.MalformedResponse("the stream ended before the answer did (no message_stop)")
}

// event is one event of a stream.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message object          `json:"message"`       // of message_start
	Index   int             `json:"index"`         // of the block
	Block   object          `json:"content_block"` // of content_block_start
	Delta   object          `json:"delta"`         // of content_block_delta and message_delta
	Usage   object          `json:"usage"`         // of message_delta
}

// object is a JSON object with possibly unknown fields.
type object map[string]json.RawMessage

// text returns a field that is a string, or "".
func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s) // stays empty
	return s
}

// merge sets the fields of from, except those that are null and already known.
func (o object) merge(from object) {
	for name, value := range from {
		if _, known := o[name]; !known || string(value) != "null" {
			o[name] = value
		}
	}
}

// accumulator assembles the events of a stream into one message, including
// unknown fields.
type accumulator struct {
	message object // nil before message_start
	counts  object // its usage
	blocks  []*blockBuffer
	deltas  blockDeltas
}

// add handles the data of the next event and reports whether it was the last.
func (f *accumulator) add(data []byte) (done bool, err error) {
	var e event
	err = json.Unmarshal(data, &e)
	switch {
	case e.Type == "error" || len(e.Error) > 0:
		*f = accumulator{} // a failed response is not billed
		return false, apiError(data)
	case err != nil:
		return false, transport.MalformedResponse("read event: %w", err)
	case e.Type == "ping":
		return false, nil
	case e.Type == "message_start" && e.Message != nil:
		return false, f.start(e.Message)
	case f.message == nil:
		return false, unexpected("the stream starts with %.40q", e.Type)
	}
	switch e.Type {
	case "content_block_start":
		if e.Index != len(f.blocks) || e.Block == nil {
			return false, transport.MalformedResponse("assemble stream: block %d starts after %d blocks", e.Index, len(f.blocks))
		}
		f.blocks = append(f.blocks, &blockBuffer{fields: e.Block})
		f.deltas.startBlock(e.Block.text("type"), e.Block.text("text"), e.Block.text("thinking"))
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= len(f.blocks) || f.blocks[e.Index].ended {
			return false, transport.MalformedResponse("assemble stream: block %d continues but was not started", e.Index)
		}
		b := f.blocks[e.Index]
		b.ended = e.Type == "content_block_stop"
		b.add(e.Delta)
		f.deltas.add(e.Delta.text("text"), e.Delta.text("thinking"))
	case "message_delta":
		f.message.merge(e.Delta)
		f.counts.merge(e.Usage)
	}
	return e.Type == "message_stop", nil
}

// start starts the message; a server may start over.
func (f *accumulator) start(message object) error {
	f.deltas.Restart()
	*f = accumulator{message: message, counts: object{}, deltas: blockDeltas{DeltaWriter: f.deltas.DeltaWriter}}
	if raw := message["usage"]; len(raw) > 0 {
		var counts object
		if err := json.Unmarshal(raw, &counts); err != nil {
			return transport.MalformedResponse("read event: usage: %w", err)
		}
		f.counts.merge(counts)
	}
	return nil
}

// usage returns the usage reported so far.
func (f *accumulator) usage() model.Usage {
	var u usage
	if raw, err := json.Marshal(f.counts); err == nil {
		_ = json.Unmarshal(raw, &u) // non-numbers count as unknown
	}
	return u.total()
}

// blockDeltas writes deltas with the same separators between blocks as the reply
// has (see messageOf).
type blockDeltas struct {
	*transport.DeltaWriter
	previous              string // type of the previous block
	hasText, hasReasoning bool
	separator             string // separator before the next text
}

// startBlock starts a block.
func (t *blockDeltas) startBlock(kind, text, thinking string) {
	t.separator = ""
	if kind == "text" && t.hasText && t.previous != "text" || kind == "thinking" && t.hasReasoning {
		t.separator = "\n\n"
	}
	t.previous = kind
	t.add(text, thinking)
}

// add writes the next part of a block.
func (t *blockDeltas) add(text, thinking string) {
	if text != "" {
		t.Text(t.separator + text)
		t.hasText, t.separator = true, ""
	}
	if thinking != "" {
		t.Reasoning(t.separator + thinking)
		t.hasReasoning, t.separator = true, ""
	}
}

// blockBuffer is a content block that is still arriving.
type blockBuffer struct {
	fields                           object
	text, thinking, input, signature strings.Builder
	citations                        []json.RawMessage
	ended                            bool
}

// add appends a delta.
func (g *blockBuffer) add(delta object) {
	switch delta.text("type") {
	case "text_delta":
		g.text.WriteString(delta.text("text"))
	case "thinking_delta":
		g.thinking.WriteString(delta.text("thinking"))
	case "input_json_delta":
		g.input.WriteString(delta.text("partial_json"))
	case "signature_delta":
		g.signature.WriteString(delta.text("signature"))
	case "citations_delta":
		g.citations = append(g.citations, delta["citation"])
	}
}

// json returns the complete block. Arguments that are not valid JSON are written
// as a string.
func (g *blockBuffer) json() json.RawMessage {
	for name, part := range map[string]*strings.Builder{"text": &g.text, "thinking": &g.thinking, "signature": &g.signature} {
		if part.Len() > 0 {
			g.fields[name] = jsonOf(g.fields.text(name) + part.String())
		}
	}
	if input := g.input.String(); json.Valid([]byte(input)) {
		g.fields["input"] = json.RawMessage(input)
	} else if input != "" {
		g.fields["input"] = jsonOf(input)
	}
	if len(g.citations) > 0 {
		g.fields["citations"] = jsonOf(g.citations)
	}
	return jsonOf(g.fields)
}

// json returns the complete message.
func (f *accumulator) json() json.RawMessage {
	content := make([]json.RawMessage, len(f.blocks))
	for i, b := range f.blocks {
		content[i] = b.json()
	}
	f.message["content"], f.message["usage"] = jsonOf(content), jsonOf(f.counts)
	return jsonOf(f.message)
}

// jsonOf encodes v, which is a string or came from JSON, without escaping HTML
// characters: users see the arguments.
func jsonOf(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// apiError returns the error of an error object inside a stream or a successful
// response. The error's type implies the HTTP status.
func apiError(object []byte) error {
	d := transport.ParseErrorDetail(object)
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
