package anthropic

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// receive assembles a streamed message and sends its texts to deltas. With an
// error it returns the usage reported so far, or none if the server reported the
// error.
func receive(events iter.Seq2[[]byte, error], deltas *transport.DeltaWriter) (json.RawMessage, model.Usage, error) {
	a := accumulator{deltas: blockDeltas{DeltaWriter: deltas}}
	for data, err := range events {
		done := false
		if err == nil {
			done, err = a.add(data)
		}
		if err != nil {
			return nil, a.usage(), err
		}
		if done {
			return a.json(), a.usage(), nil
		}
	}
	return nil, a.usage(), transport.MalformedResponse("the stream ended before the answer did (no message_stop)")
}

// event is one event of a stream.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message object          `json:"message"`       // of message_start
	Index   *int            `json:"index"`         // of the block; nil if missing
	Block   object          `json:"content_block"` // of content_block_start
	Delta   object          `json:"delta"`         // of content_block_delta and message_delta
	Usage   object          `json:"usage"`         // of message_delta
}

// object is a JSON object with possibly unknown fields.
type object map[string]json.RawMessage

// text returns a field that is a string, or "".
func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s) // s stays empty if the field is not a string
	return s
}

// merge sets the fields of from in o, except null values of fields that o already has.
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
	counts  object // usage of the message
	blocks  []*blockBuffer
	calls   int // blocks that are tool calls
	deltas  blockDeltas
}

// add handles the data of the next event and reports whether it was the last.
func (a *accumulator) add(data []byte) (done bool, err error) {
	var e event
	err = transport.Unmarshal(data, &e)
	switch {
	case e.Type == "error" || transport.IsPresent(e.Error):
		*a = accumulator{} // a failed response is not billed
		return false, apiError(data)
	case err != nil:
		return false, transport.MalformedResponse("read event: %w", err)
	case e.Type == "ping":
		return false, nil
	case e.Type == "message_start" && e.Message != nil:
		a.start(e.Message)
		return false, nil
	case a.message == nil:
		return false, unexpected("the stream starts with %.40q", e.Type)
	}
	switch e.Type {
	case "content_block_start":
		if e.Block == nil {
			return false, transport.MalformedResponse("assemble stream: a block has no content")
		}
		if e.Block.text("type") == "tool_use" {
			a.calls++
		}
		if err := transport.CheckToolCalls(a.calls); err != nil {
			return false, err
		}
		a.blocks = append(a.blocks, &blockBuffer{index: e.Index, fields: e.Block})
		a.deltas.startBlock(e.Block.text("type"), e.Block.text("text"), e.Block.text("thinking"))
	case "content_block_delta", "content_block_stop":
		if len(a.blocks) == 0 {
			return false, transport.MalformedResponse("assemble stream: a block continues but none has started")
		}
		a.block(e.Index).add(e.Delta)
		a.deltas.add(e.Delta.text("text"), e.Delta.text("thinking"))
	case "message_delta":
		a.message.merge(e.Delta)
		a.counts.merge(e.Usage)
	}
	return e.Type == "message_stop", nil
}

// block returns the newest block with an index, or the newest block: servers of this API
// do not all number blocks from 0 on.
func (a *accumulator) block(index *int) *blockBuffer {
	for _, b := range slices.Backward(a.blocks) {
		if index != nil && b.index != nil && *b.index == *index {
			return b
		}
	}
	return a.blocks[len(a.blocks)-1]
}

// start starts the message, also when a server starts over.
func (a *accumulator) start(message object) {
	a.deltas.Restart()
	*a = accumulator{message: message, counts: object{}, deltas: blockDeltas{DeltaWriter: a.deltas.DeltaWriter}}
	var counts object
	_ = json.Unmarshal(message["usage"], &counts) // a reply without usage is used, too
	a.counts.merge(counts)
}

// usage returns the usage reported so far.
func (a *accumulator) usage() model.Usage {
	var u usage
	if raw, err := json.Marshal(a.counts); err == nil {
		_ = transport.Unmarshal(raw, &u) // cannot fail: counts came from JSON
	}
	return u.total()
}

// blockDeltas writes deltas. Between blocks it writes the same separators as
// messageOf puts into the message.
type blockDeltas struct {
	*transport.DeltaWriter
	previous              string // type of the previous block
	hasText, hasReasoning bool
	separator             string // separator before the next text or thinking
}

// startBlock starts a block.
func (d *blockDeltas) startBlock(kind, text, thinking string) {
	d.separator = ""
	if kind == "text" && d.hasText && d.previous != "text" || kind == "thinking" && d.hasReasoning {
		d.separator = "\n\n"
	}
	d.previous = kind
	d.add(text, thinking)
}

// add writes the next part of a block.
func (d *blockDeltas) add(text, thinking string) {
	if text != "" {
		d.Text(d.separator + text)
		d.hasText, d.separator = true, ""
	}
	if thinking != "" {
		d.Reasoning(d.separator + thinking)
		d.hasReasoning, d.separator = true, ""
	}
}

// blockBuffer is a content block that is still arriving.
type blockBuffer struct {
	index                            *int
	fields                           object
	text, thinking, input, signature strings.Builder
	citations                        []json.RawMessage
}

// add appends a delta.
func (b *blockBuffer) add(delta object) {
	switch delta.text("type") {
	case "text_delta":
		b.text.WriteString(delta.text("text"))
	case "thinking_delta":
		b.thinking.WriteString(delta.text("thinking"))
	case "input_json_delta":
		b.input.WriteString(delta.text("partial_json"))
	case "signature_delta":
		b.signature.WriteString(delta.text("signature"))
	case "citations_delta":
		b.citations = append(b.citations, delta["citation"])
	}
}

// json returns the complete block. Arguments that are not valid JSON are written
// as a string.
func (b *blockBuffer) json() json.RawMessage {
	for name, part := range map[string]*strings.Builder{"text": &b.text, "thinking": &b.thinking, "signature": &b.signature} {
		if part.Len() > 0 {
			b.fields[name] = jsonOf(b.fields.text(name) + part.String())
		}
	}
	if input := b.input.String(); json.Valid([]byte(input)) {
		b.fields["input"] = json.RawMessage(input)
	} else if input != "" {
		b.fields["input"] = jsonOf(input)
	}
	if len(b.citations) > 0 {
		b.fields["citations"] = jsonOf(b.citations)
	}
	return jsonOf(b.fields)
}

// json returns the complete message.
func (a *accumulator) json() json.RawMessage {
	content := make([]json.RawMessage, len(a.blocks))
	for i, b := range a.blocks {
		content[i] = b.json()
	}
	a.message["content"], a.message["usage"] = jsonOf(content), jsonOf(a.counts)
	return jsonOf(a.message)
}

// jsonOf encodes v, which is a string or came from JSON. It does not escape HTML
// characters, since users see the arguments of tool calls.
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
// response. The type of the error object determines the HTTP status.
func apiError(object []byte) error {
	d := transport.ParseErrorDetail(object)
	return transport.Classify(errorStatuses[d.Code], d)
}

// errorStatuses holds the HTTP status of each error type.
var errorStatuses = map[string]int{
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
