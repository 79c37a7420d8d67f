package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/minibench/mini/model"
)

// Context is what the next call was sent, where that was not every message so
// far. A message stands in the journal once, whole, and in a Context only where
// it stands nowhere else.
type Context struct {
	Sent []ContextPart `json:"sent"`
}

// ContextPart is a message of its own, or those of the records From to To.
type ContextPart struct {
	From    int            `json:"from,omitempty"`
	To      int            `json:"to,omitempty"`
	Message *model.Message `json:"message,omitempty"`
}

// Prompt is what one call of the model was sent.
type Prompt struct {
	Record   int // of the call
	Messages []model.Message
}

// Prompts are what the model was sent, call by call, as the records of a journal
// say it. The first error ends the sequence.
func Prompts(records iter.Seq2[Record, error]) iter.Seq2[Prompt, error] {
	return func(yield func(Prompt, error) bool) {
		var s sent
		for r, err := range records {
			var p *Prompt
			if err == nil {
				p, err = s.next(r)
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

// sent is what is known of a conversation at a record.
type sent struct {
	messages []model.Message
	records  []int // of the messages
	context  *Context
}

func (s *sent) next(r Record) (*Prompt, error) {
	var err error
	switch r.Type {
	case TypeMessage:
		var m Message
		err = json.Unmarshal(r.Data, &m)
		s.messages, s.records = append(s.messages, m.Message), append(s.records, r.ID)
	case TypeResume:
		n := 0
		for n < len(s.records) && s.records[n] <= r.Parent {
			n++
		}
		// Copied, for prompts that were given out hold what is dropped.
		s.messages, s.records, s.context = slices.Clone(s.messages[:n]), s.records[:n], nil
	case TypeContext:
		s.context = &Context{}
		err = json.Unmarshal(r.Data, s.context)
	case TypeCall:
		p := &Prompt{Record: r.ID, Messages: s.messages[:len(s.messages):len(s.messages)]}
		if s.context != nil {
			p.Messages, s.context = s.pick(s.context), nil
		}
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil, nil
}

func (s *sent) pick(c *Context) []model.Message {
	at, own := c.Picked(s.records)
	picked := make([]model.Message, len(at))
	for i, n := range at {
		if n >= 0 {
			picked[i] = s.messages[n]
			continue
		}
		picked[i], own = own[0], own[1:]
	}
	return picked
}

// Picked are the positions, among the records of all messages so far, of what
// was sent, in its order; -1 stands for a message of the context's own, which
// are returned beside them.
func (c *Context) Picked(records []int) (at []int, own []model.Message) {
	for _, part := range c.Sent {
		if part.Message != nil {
			at, own = append(at, -1), append(own, *part.Message)
			continue
		}
		for i, id := range records {
			if part.From <= id && id <= part.To {
				at = append(at, i)
			}
		}
	}
	return at, own
}
