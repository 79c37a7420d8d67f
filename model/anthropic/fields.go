package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/model/transport"
)

// betasKey is the key in Kwargs that sets the Anthropic-Beta header.
const betasKey = "betas"

// fields returns the fields added to every request's body, and the value of the
// Anthropic-Beta header.
func (c Config) fields() (map[string]json.RawMessage, string, error) {
	reserved := []string{"model", "messages", "system", "stream"}
	if len(c.Tools) > 0 {
		reserved = append(reserved, "tools")
	}
	fields, err := transport.EncodeKwargs(c.Kwargs, reserved...)
	if err != nil {
		return nil, "", err
	}
	header, err := betaHeader(fields[betasKey])
	if err != nil {
		return nil, "", err
	}
	delete(fields, betasKey)
	return fields, header, c.checkBudget(fields)
}

// betaHeader returns the value of the Anthropic-Beta header.
func betaHeader(list json.RawMessage) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return "", fmt.Errorf("model kwargs: betas: want a list of names, as [context-1m-2025-08-07]")
	}
	for _, name := range names {
		if !transport.IsHeaderName(name) {
			return "", fmt.Errorf("model kwargs: betas: %q is not a name", name)
		}
	}
	return strings.Join(names, ","), nil
}

// maxTokens returns the max_tokens of a request if Kwargs do not set it.
func (c Config) maxTokens(fields map[string]json.RawMessage) int64 {
	if c.MaxTokens > 0 {
		return c.MaxTokens
	}
	return DefaultMaxTokens + thinkingBudget(fields)
}

// thinkingBudget returns the token budget for thinking; 0 if it is not set or not valid.
func thinkingBudget(fields map[string]json.RawMessage) int64 {
	var thinking struct {
		Budget int64 `json:"budget_tokens"`
	}
	if json.Unmarshal(fields["thinking"], &thinking) != nil {
		return 0
	}
	return max(0, thinking.Budget)
}

// checkBudget returns an error if max_tokens is not a number, or if there is a thinking
// budget that is not below max_tokens: the API would reject the request.
func (c Config) checkBudget(fields map[string]json.RawMessage) error {
	maxTokens := c.maxTokens(fields)
	if raw, ok := fields["max_tokens"]; ok && json.Unmarshal(raw, &maxTokens) != nil {
		return fmt.Errorf("model kwargs: max_tokens: %s is not a number of tokens", raw)
	}
	if b := thinkingBudget(fields); b > 0 && b >= maxTokens {
		return fmt.Errorf("model kwargs: thinking: a budget of %d tokens uses up the max_tokens of %d; raise max_tokens", b, maxTokens)
	}
	return nil
}
