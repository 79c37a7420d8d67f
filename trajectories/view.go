package trajectories

import (
	"slices"

	"github.com/minibench/mini/model"
)

// ConversationView is the conversation as the model sees it: all messages, with compactions
// applied. The agent uses it while it writes a journal, and readers of the journal get
// the same messages. The zero value is an empty conversation.
type ConversationView struct {
	records      []int // record IDs of messages, ascending
	messages     []model.Message
	compactions  []RecordedCompaction
	replacements []Replacement // in effect, sorted by From
	// shown are the messages with replacements applied, and spans their records. Both
	// are nil if replacements is nil.
	shown []model.Message
	spans []shownSpan
}

// shownSpan is the range of records that a shown message represents.
type shownSpan struct {
	from, to  int  // record IDs, inclusive
	synthetic bool // the message is a replacement or joined, so no message record has it
}

// Add appends the message of a record. Record IDs must be ascending.
func (v *ConversationView) Add(record int, m model.Message) {
	v.records, v.messages = append(v.records, record), append(v.messages, m)
	if v.replacements != nil {
		v.shown, v.spans = append(v.shown, m), append(v.spans, shownSpan{record, record, false})
	}
}

// Compact applies the compaction of a record.
func (v *ConversationView) Compact(record int, c Compaction) {
	v.compactions = append(v.compactions, RecordedCompaction{record, c})
	v.addReplacements(c.Replaced)
	v.rebuild()
}

// Rewind removes messages and compactions after a record.
func (v *ConversationView) Rewind(record int) {
	records, messages, compactions := v.records, v.messages, v.compactions
	*v = ConversationView{}
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

// Messages returns the shown messages, which have compactions applied. The caller must
// not change them. Later changes of the view do not affect the result.
func (v *ConversationView) Messages() []model.Message {
	if v.replacements == nil {
		return slices.Clip(v.messages)
	}
	return slices.Clip(v.shown)
}

// AllMessages returns the messages without compactions applied. The caller must not
// change them.
func (v *ConversationView) AllMessages() []model.Message { return slices.Clip(v.messages) }

// Records returns the record IDs of AllMessages.
func (v *ConversationView) Records() []int { return slices.Clip(v.records) }

// Span returns the range of records, inclusive, that Messages()[i] represents.
func (v *ConversationView) Span(i int) (from, to int) {
	s := v.span(i)
	return s.from, s.to
}

func (v *ConversationView) span(i int) shownSpan {
	if v.replacements == nil {
		return shownSpan{v.records[i], v.records[i], false}
	}
	return v.spans[i]
}

// Block is a message of a view before messages are joined: either a message of the
// journal or a replacement.
type Block struct {
	From, To int // record IDs, inclusive; equal for a message of the journal
	model.Message
	IsReplacement bool
}

// Blocks returns the shown messages before they are joined.
func (v *ConversationView) Blocks() []Block {
	var blocks []Block
	v.forEachBlock(func(b Block, _ bool) { blocks = append(blocks, b) })
	return blocks
}

// forEachBlock calls f for every block, in order. join is Replacement.Join, or false for
// a message of the journal.
func (v *ConversationView) forEachBlock(f func(b Block, join bool)) {
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

// addReplacements adds replacements and removes older ones that overlap with them.
func (v *ConversationView) addReplacements(replacements []Replacement) {
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

// rebuild computes shown and spans from the replacements.
func (v *ConversationView) rebuild() {
	v.shown, v.spans = nil, nil
	if v.replacements == nil {
		return
	}
	joinNext := false // the next message is joined to the last one if it is a user message
	v.forEachBlock(func(b Block, join bool) {
		n := len(v.shown)
		isUser := b.Role == model.User
		if n > 0 && isUser && (joinNext || join && v.shown[n-1].Role == model.User) {
			v.shown[n-1] = JoinMessages(v.shown[n-1], b.Message)
			v.spans[n-1].to, v.spans[n-1].synthetic = b.To, true
			joinNext = true
			return
		}
		v.shown, v.spans = append(v.shown, b.Message), append(v.spans, shownSpan{b.From, b.To, b.IsReplacement})
		joinNext = join && isUser
	})
}

// JoinMessages returns a with the text of b, after an empty line, and the images of b
// appended.
func JoinMessages(a, b model.Message) model.Message {
	a.Content += "\n\n" + b.Content
	a.Images = slices.Concat(a.Images, b.Images)
	return a
}

// SentMessages returns the messages of a call's prompt. c is the context of the call; if
// it is nil, SentMessages returns all shown messages.
func (v *ConversationView) SentMessages(c *PromptContext) []model.Message {
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

// parts returns c.Sent with the tail appended. It joins the tail to the last message if
// that is a user message.
func (v *ConversationView) parts(c *PromptContext) []ContextPart {
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
	lastShown := -1 // index of the last message of the last part
	for i := range shown {
		if from, to := v.Span(i); parts[n-1].From <= from && to <= parts[n-1].To {
			lastShown = i
		}
	}
	if lastShown < 0 || shown[lastShown].Role != model.User {
		return append(parts, ContextPart{Message: &tail})
	}
	joined := JoinMessages(shown[lastShown], tail)
	parts[n-1].To = v.span(lastShown).from - 1
	return append(parts, ContextPart{Message: &joined})
}

// resolve returns a context that is equivalent to c but independent of compactions: it
// refers to messages of the journal by record and contains all other messages. The
// result is nil if c is nil and no replacement is in effect.
func (v *ConversationView) resolve(c *PromptContext) *PromptContext {
	if len(v.replacements) == 0 && (c == nil || c.Tail == "") {
		return c
	}
	parts := []ContextPart{{From: 1, To: int(^uint(0) >> 1)}}
	if c != nil {
		parts = v.parts(c)
	}
	resolved := &PromptContext{}
	for _, part := range parts {
		if part.Message != nil {
			resolved.Sent = append(resolved.Sent, part)
			continue
		}
		previous := -1 // index of the last message that was added by record
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
