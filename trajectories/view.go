package trajectories

import (
	"slices"

	"github.com/minibench/mini/model"
)

// View computes the conversation that the model is shown: the messages, with
// compactions applied. It gives the same messages when a journal is written and when
// it is read. The zero value is an empty conversation.
type View struct {
	records      []int // record IDs of messages, ascending
	messages     []model.Message
	compactions  []RecordedCompaction
	replacements []Replacement // not superseded by later ones, sorted by From
	// shown are the messages with replacements applied, spans their records. Both are
	// nil if there are no replacements.
	shown []model.Message
	spans []shownSpan
}

// shownSpan is the range of records that a shown message comes from. synthetic is set
// if the message is not in the journal.
type shownSpan struct {
	from, to  int
	synthetic bool
}

// Add appends a message. record must be greater than all before.
func (v *View) Add(record int, m model.Message) {
	v.records, v.messages = append(v.records, record), append(v.messages, m)
	if v.replacements != nil {
		v.shown, v.spans = append(v.shown, m), append(v.spans, shownSpan{record, record, false})
	}
}

// Compact applies a compaction.
func (v *View) Compact(record int, c Compaction) {
	v.compactions = append(v.compactions, RecordedCompaction{record, c})
	v.replace(c.Replaced)
	v.rebuild()
}

// Rewind removes everything after a record.
func (v *View) Rewind(record int) {
	records, messages, compactions := v.records, v.messages, v.compactions
	*v = View{}
	for i, id := range records {
		if id > record {
			break
		}
		for len(compactions) > 0 && compactions[0].Record < id {
			v.Compact(compactions[0].Record, compactions[0].Compaction)
			compactions = compactions[1:]
		}
		v.Add(id, messages[i])
	}
	for len(compactions) > 0 && compactions[0].Record <= record {
		v.Compact(compactions[0].Record, compactions[0].Compaction)
		compactions = compactions[1:]
	}
}

// Messages returns the messages that are shown. The caller must not change them.
// Later changes of the view do not affect the result.
func (v *View) Messages() []model.Message {
	if v.replacements == nil {
		return slices.Clip(v.messages)
	}
	return slices.Clip(v.shown)
}

// AllMessages returns the messages without compactions applied. The caller must not
// change them.
func (v *View) AllMessages() []model.Message { return slices.Clip(v.messages) }

// Records returns the record IDs of AllMessages.
func (v *View) Records() []int { return slices.Clip(v.records) }

// Span returns the range of records that Messages()[i] comes from.
func (v *View) Span(i int) (from, to int) {
	s := v.span(i)
	return s.from, s.to
}

func (v *View) span(i int) shownSpan {
	if v.replacements == nil {
		return shownSpan{v.records[i], v.records[i], false}
	}
	return v.spans[i]
}

// Block is an element of a view before messages are joined: a message of the journal
// or a replacement.
type Block struct {
	From, To int // record IDs
	model.Message
	IsReplacement bool
}

// Blocks returns the elements of the view.
func (v *View) Blocks() []Block {
	var blocks []Block
	v.each(func(b Block, _ bool) { blocks = append(blocks, b) })
	return blocks
}

// each calls f for every element, in order. join reports whether it is to be joined
// with adjacent user messages.
func (v *View) each(f func(b Block, join bool)) {
	next := 0 // index in replacements
	for i, id := range v.records {
		for next < len(v.replacements) && v.replacements[next].To < id {
			next++
		}
		if next == len(v.replacements) || id < v.replacements[next].From {
			f(Block{id, id, v.messages[i], false}, false)
			continue
		}
		r := v.replacements[next]
		if i == 0 || v.records[i-1] < r.From { // the first message of the replacement
			f(Block{r.From, r.To, r.Message, true}, r.Join)
		}
	}
}

// replace adds replacements. It removes older ones that overlap with them.
func (v *View) replace(replacements []Replacement) {
	result := v.replacements[:0:0]
	for _, old := range v.replacements {
		if !slices.ContainsFunc(replacements, func(r Replacement) bool { return r.From <= old.To && old.From <= r.To }) {
			result = append(result, old)
		}
	}
	for _, r := range replacements {
		if r.From <= r.To {
			result = append(result, r)
		}
	}
	slices.SortStableFunc(result, func(a, b Replacement) int { return a.From - b.From })
	v.replacements = result
}

// rebuild computes the messages that are shown.
func (v *View) rebuild() {
	v.shown, v.spans = nil, nil
	if v.replacements == nil {
		return
	}
	open := false // following user messages are joined to the last message
	v.each(func(b Block, join bool) {
		n := len(v.shown)
		user := b.Role == model.User
		if n > 0 && user && (open || join && v.shown[n-1].Role == model.User) {
			v.shown[n-1] = JoinMessages(v.shown[n-1], b.Message)
			v.spans[n-1].to, v.spans[n-1].synthetic = b.To, true
			open = true
			return
		}
		v.shown, v.spans = append(v.shown, b.Message), append(v.spans, shownSpan{b.From, b.To, b.IsReplacement})
		open = join && user
	})
}

// JoinMessages returns a with the text and the images of b appended.
func JoinMessages(a, b model.Message) model.Message {
	a.Content += "\n\n" + b.Content
	a.Images = slices.Concat(a.Images, b.Images)
	return a
}

// SentMessages returns the messages that a call sent according to a context record.
// If c is nil, these are all shown messages.
func (v *View) SentMessages(c *Context) []model.Message {
	if c == nil {
		return v.Messages()
	}
	var sent []model.Message
	for _, part := range v.parts(c) {
		if part.Message != nil {
			sent = append(sent, *part.Message)
			continue
		}
		for i, m := range v.Messages() {
			if from, to := v.Span(i); part.From <= from && to <= part.To {
				sent = append(sent, m)
			}
		}
	}
	return sent
}

// parts returns the parts of a context, with the tail appended. The tail is joined to
// the last message if that is a user message.
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
		joined := JoinMessages(*last.Message, tail)
		parts[n-1].Message = &joined
		return parts
	}
	shown := v.Messages()
	at := -1 // the last message of the last part
	for i := range shown {
		if from, to := v.Span(i); parts[n-1].From <= from && to <= parts[n-1].To {
			at = i
		}
	}
	if at < 0 || shown[at].Role != model.User {
		return append(parts, ContextPart{Message: &tail})
	}
	joined := JoinMessages(shown[at], tail)
	parts[n-1].To = v.span(at).from - 1
	return append(parts, ContextPart{Message: &joined})
}

// resolve returns the context of a call in a form that does not depend on
// compactions: messages of the journal by record, others by value. It returns nil if
// the call sent all messages.
func (v *View) resolve(c *Context) *Context {
	if len(v.replacements) == 0 && (c == nil || c.Tail == "") {
		return c
	}
	parts := []ContextPart{{From: 1, To: int(^uint(0) >> 1)}}
	if c != nil {
		parts = v.parts(c)
	}
	resolved := &Context{}
	for _, part := range parts {
		if part.Message != nil {
			resolved.Sent = append(resolved.Sent, part)
			continue
		}
		previous := -1 // index of the preceding message, if it is in the journal
		for i := range v.Messages() {
			s := v.span(i)
			if s.from < part.From || s.to > part.To {
				continue
			}
			switch n := len(resolved.Sent); {
			case s.synthetic:
				resolved.Sent = append(resolved.Sent, ContextPart{Message: &v.shown[i]})
			case previous >= 0 && previous == i-1:
				resolved.Sent[n-1].To, previous = s.to, i
			default:
				resolved.Sent, previous = append(resolved.Sent, ContextPart{From: s.from, To: s.to}), i
			}
		}
	}
	return resolved
}
