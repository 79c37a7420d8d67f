package trajectories

import (
	"slices"

	"github.com/minibench/mini/model"
)

// View is a conversation as the model is shown it: the messages so far, after the
// compactions so far. Whoever writes a journal and whoever reads it have the same
// from it, byte for byte. The zero value is an empty one.
type View struct {
	records  []int // of the messages, and growing
	messages []model.Message
	made     []Compacted
	replaced []Replacement // in force, by From
	// shown are the messages in their present form, spans where each is from.
	shown []model.Message
	spans []shownSpan
}

// shownSpan are the records of a message that is shown; own says that it is none
// of the journal's messages.
type shownSpan struct {
	from, to int
	own      bool
}

// Add appends a message, whose record is a later one than all before.
func (v *View) Add(record int, m model.Message) {
	v.records, v.messages = append(v.records, record), append(v.messages, m)
	v.shown, v.spans = append(v.shown, m), append(v.spans, shownSpan{record, record, false})
}

// Compact puts other messages in place of some, from a record on.
func (v *View) Compact(record int, c Compaction) {
	v.made = append(v.made, Compacted{record, c})
	v.replace(c.Replaced)
	v.arrange()
}

// Rewind forgets what came after a record.
func (v *View) Rewind(record int) {
	records, messages, made := v.records, v.messages, v.made
	*v = View{}
	for i, id := range records {
		if id > record {
			break
		}
		for len(made) > 0 && made[0].Record < id {
			v.Compact(made[0].Record, made[0].Compaction)
			made = made[1:]
		}
		v.Add(id, messages[i])
	}
	for len(made) > 0 && made[0].Record <= record {
		v.Compact(made[0].Record, made[0].Compaction)
		made = made[1:]
	}
}

// Messages are those that are shown. They are not to be changed; what is added to
// the view later is not among them.
func (v *View) Messages() []model.Message { return v.shown[:len(v.shown):len(v.shown)] }

// Span are the records that a message of Messages stands for.
func (v *View) Span(i int) (from, to int) { return v.spans[i].from, v.spans[i].to }

// Block is a piece of a view before pieces are joined: a message of the journal,
// or what stands for some.
type Block struct {
	From, To int // records
	model.Message
	Replaced bool
}

// Blocks are the view piece by piece.
func (v *View) Blocks() []Block {
	var blocks []Block
	v.each(func(b Block, _ bool) { blocks = append(blocks, b) })
	return blocks
}

// each passes the pieces on, in order, and says which are to be joined.
func (v *View) each(f func(b Block, join bool)) {
	next := 0 // of the replacements
	for i, id := range v.records {
		for next < len(v.replaced) && v.replaced[next].To < id {
			next++
		}
		if next == len(v.replaced) || id < v.replaced[next].From {
			f(Block{id, id, v.messages[i], false}, false)
			continue
		}
		r := v.replaced[next]
		if i == 0 || v.records[i-1] < r.From { // its first
			f(Block{r.From, r.To, r.Message, true}, r.Join)
		}
	}
}

// replace takes in replacements; what they overlap with is not in force any more.
func (v *View) replace(all []Replacement) {
	kept := v.replaced[:0:0]
	for _, old := range v.replaced {
		if !slices.ContainsFunc(all, func(r Replacement) bool { return r.From <= old.To && old.From <= r.To }) {
			kept = append(kept, old)
		}
	}
	for _, r := range all {
		if r.From <= r.To {
			kept = append(kept, r)
		}
	}
	slices.SortStableFunc(kept, func(a, b Replacement) int { return a.From - b.From })
	v.replaced = kept
}

// arrange makes the messages that are shown of the pieces.
func (v *View) arrange() {
	v.shown, v.spans = nil, nil
	open := false // the last message takes in those of the user that follow
	v.each(func(b Block, join bool) {
		n := len(v.shown)
		user := b.Role == model.User
		if n > 0 && user && (open || join && v.shown[n-1].Role == model.User) {
			v.shown[n-1] = Joined(v.shown[n-1], b.Message)
			v.spans[n-1].to, v.spans[n-1].own = b.To, true
			open = true
			return
		}
		v.shown, v.spans = append(v.shown, b.Message), append(v.spans, shownSpan{b.From, b.To, b.Replaced})
		open = join && user
	})
}

// Joined is two messages as one: the first, with the text and the images of the
// second after its own.
func Joined(a, b model.Message) model.Message {
	a.Content += "\n\n" + b.Content
	a.Images = slices.Concat(a.Images, b.Images)
	return a
}

// Send are the messages that a call was sent by a context record; without one,
// those that are shown.
func (v *View) Send(c *Context) []model.Message {
	if c == nil {
		return v.Messages()
	}
	var sent []model.Message
	for _, part := range v.parts(c) {
		if part.Message != nil {
			sent = append(sent, *part.Message)
			continue
		}
		for i, s := range v.spans {
			if part.From <= s.from && s.to <= part.To {
				sent = append(sent, v.shown[i])
			}
		}
	}
	return sent
}

// parts are those of a context, and its tail as the last of them. A tail goes
// into the last message where that is the user's, else it is one of its own.
func (v *View) parts(c *Context) []ContextPart {
	if c.Tail == "" {
		return c.Sent
	}
	parts := slices.Clone(c.Sent)
	tail := model.Message{Role: model.User, Content: c.Tail}
	n := len(parts)
	if n == 0 {
		return []ContextPart{{Message: &tail}}
	}
	if last := parts[n-1]; last.Message != nil {
		if last.Message.Role != model.User {
			return append(parts, ContextPart{Message: &tail})
		}
		joined := Joined(*last.Message, tail)
		parts[n-1].Message = &joined
		return parts
	}
	at := -1 // the last message of the last part
	for i, s := range v.spans {
		if parts[n-1].From <= s.from && s.to <= parts[n-1].To {
			at = i
		}
	}
	if at < 0 || v.shown[at].Role != model.User {
		return append(parts, ContextPart{Message: &tail})
	}
	joined := Joined(v.shown[at], tail)
	parts[n-1].To = v.spans[at].from - 1
	return append(parts, ContextPart{Message: &joined})
}

// explained is what a call was sent in parts that need no compaction to be
// understood: the journal's own messages by their records, others as they are.
// It is nil where that is every message so far.
func (v *View) explained(c *Context) *Context {
	if len(v.replaced) == 0 && (c == nil || c.Tail == "") {
		return c
	}
	parts := []ContextPart{{From: 1, To: int(^uint(0) >> 1)}}
	if c != nil {
		parts = v.parts(c)
	}
	e := &Context{}
	for _, part := range parts {
		if part.Message != nil {
			e.Sent = append(e.Sent, part)
			continue
		}
		before := -1 // the message before, where it is the journal's own
		for i, s := range v.spans {
			if s.from < part.From || s.to > part.To {
				continue
			}
			switch n := len(e.Sent); {
			case s.own:
				e.Sent = append(e.Sent, ContextPart{Message: &v.shown[i]})
			case before >= 0 && before == i-1:
				e.Sent[n-1].To, before = s.to, i
			default:
				e.Sent, before = append(e.Sent, ContextPart{From: s.from, To: s.to}), i
			}
		}
	}
	return e
}
