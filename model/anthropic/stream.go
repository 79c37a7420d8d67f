package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/transport"
)

// receive puts a streamed answer together. The data of an event says what it
// is, so its name is not needed: some proxies lose it. Beside an error it says
// what the answer had taken by then. Pieces are told of as they come.
func receive(body io.Reader, told *transport.Pieces) (json.RawMessage, model.Usage, error) {
	f := fold{told: teller{Pieces: told}}
	raw, err := f.receive(bufio.NewReader(body))
	return raw, f.usage(), err
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
				return f.json(), nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, transport.Broken("the stream ended before the answer did (no message_stop)")
		case err != nil:
			return nil, fmt.Errorf("read stream: %w", err)
		}
	}
}

// event is one of a stream.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message object          `json:"message"`       // of message_start
	Index   int             `json:"index"`         // of the block
	Block   object          `json:"content_block"` // of content_block_start
	Delta   object          `json:"delta"`         // of content_block_delta and message_delta
	Usage   object          `json:"usage"`         // of message_delta
}

// object is one whose fields need not be known.
type object map[string]json.RawMessage

// text is a field that is a string; empty where it is none.
func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o[name], &s) // else it stays empty
	return s
}

// merge sets fields as another object has them, but for those that it has no
// value for.
func (o object) merge(from object) {
	for name, value := range from {
		if _, known := o[name]; !known || string(value) != "null" {
			o[name] = value
		}
	}
}

// fold makes one message of the events of a stream, fields that are not known
// here included.
type fold struct {
	message object // nil before message_start
	counts  object // its usage
	blocks  []*growing
	told    teller
}

// add takes the data of the next event, and says whether it was the last one.
func (f *fold) add(data []byte) (done bool, err error) {
	if len(data) == 0 {
		return false, nil
	}
	var e event
	err = json.Unmarshal(data, &e)
	switch {
	case e.Type == "error" || len(e.Error) > 0:
		*f = fold{} // who says that he failed charges for nothing
		return false, failed(data)
	case err != nil:
		return false, transport.Broken("read event: %w", err)
	case e.Type == "ping":
		return false, nil
	case e.Type == "message_start" && e.Message != nil:
		return false, f.start(e.Message)
	case f.message == nil:
		return false, foreign("the stream begins with %.40q", e.Type)
	}
	switch e.Type {
	case "content_block_start":
		if e.Index != len(f.blocks) || e.Block == nil {
			return false, transport.Broken("put stream together: block %d begins after %d", e.Index, len(f.blocks))
		}
		f.blocks = append(f.blocks, &growing{fields: e.Block})
		f.told.begin(e.Block.text("type"), e.Block.text("text"), e.Block.text("thinking"))
	case "content_block_delta", "content_block_stop":
		if e.Index < 0 || e.Index >= len(f.blocks) || f.blocks[e.Index].ended {
			return false, transport.Broken("put stream together: block %d goes on, and was not begun", e.Index)
		}
		b := f.blocks[e.Index]
		b.ended = e.Type == "content_block_stop"
		b.add(e.Delta)
		f.told.goOn(e.Delta.text("text"), e.Delta.text("thinking"))
	case "message_delta":
		f.message.merge(e.Delta)
		f.counts.merge(e.Usage)
	}
	return e.Type == "message_stop", nil
}

// start begins the message; a server may do so again.
func (f *fold) start(message object) error {
	f.told.Restart()
	*f = fold{message: message, counts: object{}, told: teller{Pieces: f.told.Pieces}}
	if raw := message["usage"]; len(raw) > 0 {
		var counts object
		if err := json.Unmarshal(raw, &counts); err != nil {
			return transport.Broken("read event: usage: %w", err)
		}
		f.counts.merge(counts)
	}
	return nil
}

// usage is what the answer took, as far as it is told.
func (f *fold) usage() model.Usage {
	var u usage
	if raw, err := json.Marshal(f.counts); err == nil {
		_ = json.Unmarshal(raw, &u) // what is no count is not known
	}
	return u.total()
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

// growing is a block and what came of its texts.
type growing struct {
	fields                           object
	text, thinking, input, signature strings.Builder
	citations                        []json.RawMessage
	ended                            bool
}

// add takes a part of a text.
func (g *growing) add(delta object) {
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

// json is the block as it would have come in one piece. Arguments that are no
// JSON stand in it as a string.
func (g *growing) json() json.RawMessage {
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

// json is the message as it would have come in one piece.
func (f *fold) json() json.RawMessage {
	content := make([]json.RawMessage, len(f.blocks))
	for i, b := range f.blocks {
		content[i] = b.json()
	}
	f.message["content"], f.message["usage"] = jsonOf(content), jsonOf(f.counts)
	return jsonOf(f.message)
}

// jsonOf is for what was JSON before, or is a string. Letters stay as they are:
// arguments are shown.
func jsonOf(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
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
