package dialect

import (
	"iter"
	"slices"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/openai"
)

// HasTokens reports whether answers in a dialect can have token ids.
func HasTokens(d Dialect) bool { return d.Name() == "chat" }

// AddTokens makes a chat request ask for token ids and log probabilities. It returns which of them the agent had not
// asked for, so that they are not for it: the names of the fields return_token_ids and logprobs.
func AddTokens(b *Body) (added []string) {
	fields := openai.TokenFields()
	for _, name := range []string{"return_token_ids", "logprobs"} {
		if string(b.Get(name)) != "true" {
			b.Set(name, fields[name])
			added = append(added, name)
		}
	}
	const top = "top_logprobs"
	if value := string(b.Get(top)); value == "" || value == "null" || slices.Contains(added, "logprobs") {
		b.Set(top, fields[top])
	}
	return added
}

// RemoveTokens returns an event or an answer of a chat request without what AddTokens added.
func RemoveTokens(data []byte, added []string) []byte {
	if len(added) == 0 {
		return data
	}
	return openai.RemoveTokens(data, slices.Contains(added, "return_token_ids"), slices.Contains(added, "logprobs"))
}

// WithTokens returns the dialect d for requests of AddTokens: agents may ask for token ids, replies have their tokens,
// and one without is an error.
func WithTokens(d Dialect) Dialect { return withTokens{d} }

type withTokens struct{ Dialect }

// Reply implements Dialect.
func (d withTokens) Reply(body []byte, p model.Price) (model.Reply, error) {
	return takeTokens(d.Dialect.Reply(body, p))
}

// Stream implements Dialect.
func (d withTokens) Stream(events iter.Seq2[[]byte, error], p model.Price) (model.Reply, error) {
	return takeTokens(d.Dialect.Stream(events, p))
}

func (d withTokens) fields() []string {
	return append(slices.Clip(d.Dialect.fields()), "return_token_ids")
}

func takeTokens(reply model.Reply, err error) (model.Reply, error) {
	if err == nil {
		err = openai.TakeTokens(&reply)
	}
	return reply, err
}
