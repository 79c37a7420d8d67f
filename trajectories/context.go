package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/minibench/mini/model"
)

// PromptContext is the prompt of the next call. It is recorded if the prompt is not the whole
// conversation with compactions applied.
type PromptContext struct {
	// Sent refers to messages in the journal by record ID and contains others.
	Sent []ContextPart `json:"sent"`
	// Tail is text at the end of the prompt of this call only. If the last message is
	// a user message, Tail is appended to it after an empty line; otherwise Tail is a
	// separate user message.
	Tail string `json:"tail,omitempty"`
}

// ContextPart is either Message or, if that is nil, the messages of the records From to
// To, inclusive, with compactions applied. A message is omitted if it replaces records
// outside the range too.
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
	view    ConversationView
	context *PromptContext // of the next call, or nil
}

// add processes a record. It returns the prompt if the record is a model call.
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
		b.context = &PromptContext{}
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

// Resolve returns an index for each message of Sent; it ignores Tail and compactions.
// records are the record IDs of all messages so far; an index refers to records, or is -1
// for the next element of own, which are the messages that the context itself contains.
func (c *PromptContext) Resolve(records []int) (indexes []int, own []model.Message) {
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
