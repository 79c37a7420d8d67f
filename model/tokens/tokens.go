// Package tokens estimates how many tokens a prompt has, for the time before a
// provider has counted any: offline, and quickly whatever the text is.
//
// OpenAI's models are counted with their own vocabularies. Others do not
// publish theirs, or not in a form a program could carry; for them length stands
// in, at what source code and English have come to with most of them.
//
//	n := tokens.For("gpt-5-mini").Messages(history)
package tokens

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/minibench/mini/model"
)

const (
	// perMessage are the tokens around each message that name its role.
	perMessage = 4
	// perImage is what a picture of about a thousand pixels a side comes to; the
	// providers' rules differ by a factor of two.
	perImage = 1000
	// bytesPerToken is what texts have with vocabularies that are not known.
	bytesPerToken = 3.5
	// piece bounds what is counted at once, in bytes: some texts, as one letter a
	// million times, take a vocabulary longer the longer they are.
	piece = 32 << 10
)

// Counter counts in the way of one model. The zero value knows lengths only. It
// is safe for concurrent use.
type Counter struct{ vocabulary func() counting }

// counting is what is wanted of a vocabulary. The library's own interface would
// link all of its vocabularies.
type counting interface {
	Count(text string) (int, error)
}

// Vocabularies are made at their first use, which takes tens of milliseconds.
var (
	newer = sync.OnceValue(func() counting { return codec.NewO200kBase() })
	older = sync.OnceValue(func() counting { return codec.NewCl100kBase() })
)

// For is the counter for a model, by its name at the provider; a prefix that
// ends in a slash, as routers put before it, does not matter.
func For(name string) Counter {
	name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	has := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(name, p); ok && (rest == "" || strings.ContainsAny(rest[:1], "-.:")) {
				return true
			}
		}
		return false
	}
	switch {
	case has("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-6", "chatgpt-4o-latest", "codex", "o1", "o3", "o4", "gpt-oss"):
		return Counter{newer}
	case has("gpt-4", "gpt-3.5", "gpt-35"):
		return Counter{older}
	}
	return Counter{}
}

// Exact says whether texts are counted with the model's own vocabulary.
func (c Counter) Exact() bool { return c.vocabulary != nil }

// Messages estimates a conversation.
func (c Counter) Messages(messages []model.Message) int64 {
	var n int64
	for _, m := range messages {
		n += perMessage + c.Text(m.Content) + perImage*int64(len(m.Images))
		for _, call := range m.Calls {
			n += perMessage + c.Text(call.Name) + c.Text(call.Arguments)
		}
	}
	return n
}

// Text estimates one text. Bytes that are no UTF-8 count like any.
func (c Counter) Text(text string) int64 {
	if c.vocabulary == nil {
		return int64(float64(len(text))/bytesPerToken + 0.999)
	}
	v := c.vocabulary()
	var total int64
	for len(text) > 0 {
		n := cut(text)
		count, err := v.Count(text[:n])
		if err != nil { // not in its default mode
			count = n
		}
		total += int64(count)
		text = text[n:]
	}
	return total
}

// cut is where the next piece ends: after its last line if it has several, and
// never within a character.
func cut(text string) int {
	if len(text) <= piece {
		return len(text)
	}
	if i := strings.LastIndexByte(text[:piece], '\n'); i > 0 {
		return i + 1
	}
	for n := piece; n > piece-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return piece
}
