package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/minibench/mini/model"
)

// Context is the prompt of the next call, if it is not all messages with compactions
// applied. It refers to messages of the journal by record, and contains other
// messages.
type Context struct {
	Sent []ContextPart `json:"sent"`
	// Tail is text at the end of the prompt of this call only. It is appended to the
	// last message, after an empty line, if that is a user message; otherwise it is a
	// user message of its own.
	Tail string `json:"tail,omitempty"`
}

// ContextPart is either a message or the shown messages of the records From to To,
// inclusive. A replacement for messages of which only some are in the range is left
// out.
type ContextPart struct {
	From    int            `json:"from,omitempty"`
	To      int            `json:"to,omitempty"`
	Message *model.Message `json:"message,omitempty"`
}

// Prompt is the prompt of one model call.
type Prompt struct {
	Record   int // record ID of the call
	Messages []model.Message
}

// Prompts yields the prompt of each model call in the records of a journal. The first
// error ends the sequence.
func Prompts(records iter.Seq2[Record, error]) iter.Seq2[Prompt, error] {
	return func(yield func(Prompt, error) bool) {
		var b promptBuilder
		for r, err := range records {
			var p *Prompt
			if err == nil {
				p, err = b.add(r)
			}
			if err != nil {
				yield(Prompt{}, err)
				return
			}
			if p != nil && !yield(*p, nil) {
				return
			}
		}
	}
}

// promptBuilder is the state of Prompts.
type promptBuilder struct {
	view    View
	context *Context
}

func (b *promptBuilder) add(r Record) (*Prompt, error) {
	var err error
	switch r.Type {
	case TypeMessage:
		var m Message
		err = json.Unmarshal(r.Data, &m)
		b.view.Add(r.ID, m.Message)
	case TypeCompaction:
		var c Compaction
		err = json.Unmarshal(r.Data, &c)
		b.view.Compact(r.ID, c)
	case TypeResume:
		b.view.Rewind(r.Parent)
		b.context = nil
	case TypeContext:
		b.context = &Context{}
		err = json.Unmarshal(r.Data, b.context)
	case TypeCall:
		p := &Prompt{Record: r.ID, Messages: b.view.SentMessages(b.context)}
		b.context = nil
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil, nil
}

// Resolve returns the indexes of the sent messages in records, which are the record
// IDs of all messages so far. Index -1 stands for the next message of own, the
// messages in the context itself.
func (c *Context) Resolve(records []int) (indexes []int, own []model.Message) {
	for _, part := range c.Sent {
		if part.Message != nil {
			indexes, own = append(indexes, -1), append(own, *part.Message)
			continue
		}
		for i, id := range records {
			if part.From <= id && id <= part.To {
				indexes = append(indexes, i)
			}
		}
	}
	return indexes, own
}
