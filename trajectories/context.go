package trajectories

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/minibench/mini/model"
)

// Context is what the next call was sent, where that was not every message so
// far, as compactions have left them. A message stands in the journal once, whole,
// and in a Context only where it stands nowhere else.
type Context struct {
	Sent []ContextPart `json:"sent"`
	// Tail is a text that stood at the end, in this call alone: in the last
	// message, after an empty line, where that is the user's; else in a message of
	// the user's own.
	Tail string `json:"tail,omitempty"`
}

// ContextPart is a message of its own, or those that are shown of the records From
// to To. What stands for messages of which only some are among these is left out.
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
	view    View
	context *Context
}

func (s *sent) next(r Record) (*Prompt, error) {
	var err error
	switch r.Type {
	case TypeMessage:
		var m Message
		err = json.Unmarshal(r.Data, &m)
		s.view.Add(r.ID, m.Message)
	case TypeCompaction:
		var c Compaction
		err = json.Unmarshal(r.Data, &c)
		s.view.Compact(r.ID, c)
	case TypeResume:
		s.view.Rewind(r.Parent)
		s.context = nil
	case TypeContext:
		s.context = &Context{}
		err = json.Unmarshal(r.Data, s.context)
	case TypeCall:
		p := &Prompt{Record: r.ID, Messages: s.view.Send(s.context)}
		s.context = nil
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", r.ID, err)
	}
	return nil, nil
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
