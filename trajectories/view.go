package trajectories

import (
	"iter"
	"math"
	"slices"

	"github.com/minibench/mini/model"
)

// ConversationView is the conversation as the model sees it: all messages, with compactions
// applied. The agent uses it while it writes a journal, and readers of the journal get
// the same messages. The zero value is an empty conversation.
type ConversationView struct {
	records      []int // record IDs of messages, ascending
	messages     []model.Message
	compactions  []Compaction
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

// Compact applies a compaction.
func (v *ConversationView) Compact(c Compaction) {
	v.compactions = append(v.compactions, c)
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
			v.Compact(compactions[0])
			compactions = compactions[1:]
		}
		v.Add(id, messages[i])
	}
	for len(compactions) > 0 && compactions[0].Record <= record {
		v.Compact(compactions[0])
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
	join          bool // Replacement.Join
}

// Blocks returns the shown messages before they are joined.
func (v *ConversationView) Blocks() []Block {
	var blocks []Block
	next := 0 // index in replacements
	for i, id := range v.records {
		for next < len(v.replacements) && v.replacements[next].To < id {
			next++
		}
		if next == len(v.replacements) || id < v.replacements[next].From {
			blocks = append(blocks, Block{From: id, To: id, Message: v.messages[i]})
			continue
		}
		r := v.replacements[next]
		if i == 0 || v.records[i-1] < r.From { // the first message of the replacement
			blocks = append(blocks, Block{r.From, r.To, r.Message, true, r.Join})
		}
	}
	return blocks
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
	for _, b := range v.Blocks() {
		n := len(v.shown)
		isUser := b.Role == model.User
		if n > 0 && isUser && (joinNext || b.join && v.shown[n-1].Role == model.User) {
			v.shown[n-1] = JoinMessages(v.shown[n-1], b.Message)
			v.spans[n-1].to, v.spans[n-1].synthetic = b.To, true
			joinNext = true
			continue
		}
		v.shown, v.spans = append(v.shown, b.Message), append(v.spans, shownSpan{b.From, b.To, b.IsReplacement})
		joinNext = b.join && isUser
	}
}

// JoinMessages returns a with the text of b, after an empty line, and the images of b
// appended.
func JoinMessages(a, b model.Message) model.Message {
	a.Content += "\n\n" + b.Content
	a.Images = slices.Concat(a.Images, b.Images)
	return a
}

// promptMessage is a message of a prompt.
type promptMessage struct {
	model.Message
	index int // in Messages; -1 if the message is not one of them
}

// prompt returns the messages of a call's prompt. c is the context of the call.
func (v *ConversationView) prompt(c *PromptContext) []promptMessage {
	var all []promptMessage
	for _, part := range c.Sent {
		if part.Message != nil {
			all = append(all, promptMessage{*part.Message, -1})
			continue
		}
		for i, m := range v.Messages() {
			if s := v.span(i); part.From <= s.from && s.to <= part.To {
				all = append(all, promptMessage{m, i})
			}
		}
	}
	tail := model.Message{Role: model.User, Content: c.Tail}
	switch n := len(all); {
	case c.Tail == "":
	case n > 0 && all[n-1].Role == model.User:
		all[n-1] = promptMessage{JoinMessages(all[n-1].Message, tail), -1}
	default:
		all = append(all, promptMessage{tail, -1})
	}
	return all
}

// SentMessages returns the messages of a call's prompt. c is the context of the call; if
// it is nil, SentMessages returns all shown messages.
func (v *ConversationView) SentMessages(c *PromptContext) []model.Message {
	if c == nil {
		return v.Messages()
	}
	var sent []model.Message
	for _, m := range v.prompt(c) {
		sent = append(sent, m.Message)
	}
	return sent
}

// resolve returns a context that is equivalent to c but independent of compactions: it
// refers to messages of the journal by record and contains all other messages. The
// result is nil if c is nil and no replacement is in effect.
func (v *ConversationView) resolve(c *PromptContext) *PromptContext {
	if len(v.replacements) == 0 && (c == nil || c.Tail == "") {
		return c
	}
	if c == nil {
		c = &PromptContext{Sent: []ContextPart{{From: 1, To: math.MaxInt}}}
	}
	resolved, previous := &PromptContext{}, -1 // index of the previous message, if it was added by record
	for _, m := range v.prompt(c) {
		switch n := len(resolved.Sent); {
		case m.index < 0 || v.span(m.index).synthetic:
			resolved.Sent, previous = append(resolved.Sent, ContextPart{Message: &m.Message}), -1
		case previous >= 0 && previous == m.index-1:
			resolved.Sent[n-1].To, previous = v.span(m.index).to, m.index
		default:
			s := v.span(m.index)
			resolved.Sent, previous = append(resolved.Sent, ContextPart{From: s.from, To: s.to}), m.index
		}
	}
	return resolved
}

// Compaction replaces messages of the conversation by shorter ones in later prompts.
// The original messages stay in the journal. A later compaction may replace the
// shorter messages too.
type Compaction struct {
	// Policy is "elide" or "summarize".
	Policy string `json:"policy"`
	// TokensBefore and TokensAfter are estimates of the length of the prompt before
	// and after the compaction; MessagesBefore and MessagesAfter count its messages.
	TokensBefore   int64 `json:"tokens_before"`
	TokensAfter    int64 `json:"tokens_after"`
	MessagesBefore int   `json:"messages_before"`
	MessagesAfter  int   `json:"messages_after"`
	// Replaced are the replacements, sorted by From and without overlaps.
	Replaced []Replacement `json:"replaced"`
	// Fallback explains why the policy "summarize" replaced messages without a
	// summary; empty if it did not.
	Fallback string `json:"fallback,omitempty"`
	// Record is the ID of the record. Attempt sets it.
	Record int `json:"-"`
}

// Replacement is a message that replaces the messages of the records From to To,
// inclusive.
type Replacement struct {
	From    int           `json:"from"`
	To      int           `json:"to"`
	Message model.Message `json:"message"`
	// Join is set if prompts contain the message and the user messages beside it as
	// one message, so that user and assistant messages alternate. An empty line
	// separates the texts. User messages added after the compaction are not joined
	// until the next compaction.
	Join bool `json:"join,omitempty"`
}

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
		a := Attempt{Omit: ForTraining}
		for r, err := range records {
			if err == nil && r.Type == TypeCall && !yield(Prompt{r.ID, a.NextPrompt()}, nil) {
				return
			}
			if err == nil {
				err = a.Add(r)
			}
			if err != nil {
				yield(Prompt{}, err)
				return
			}
		}
	}
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
