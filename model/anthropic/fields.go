package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/minibench/mini/model/transport"
)

// betas names Kwargs that become a header.
const betas = "betas"

// fields is what every request's body gets on top, and the betas of its header.
func (c Config) fields() (map[string]json.RawMessage, string, error) {
	own := []string{"model", "messages", "system", "stream"}
	if len(c.Tools) > 0 {
		own = append(own, "tools")
	}
	fields, err := transport.Fields(c.Kwargs, own...)
	if err != nil {
		return nil, "", err
	}
	header, err := betaHeader(fields[betas])
	if err != nil {
		return nil, "", err
	}
	delete(fields, betas)
	return fields, header, c.checkBudget(fields)
}

// betaHeader is the value of the header that switches betas on.
func betaHeader(list json.RawMessage) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return "", fmt.Errorf("model kwargs: betas: want a list of names, as [context-1m-2025-08-07]")
	}
	for _, name := range names {
		if !transport.HeaderName(name) {
			return "", fmt.Errorf("model kwargs: betas: %q is not a name", name)
		}
	}
	return strings.Join(names, ","), nil
}

// maxTokens is what a request asks for where Kwargs do not say it.
func (c Config) maxTokens(fields map[string]json.RawMessage) int64 {
	if c.MaxTokens > 0 {
		return c.MaxTokens
	}
	return DefaultMaxTokens + budget(fields)
}

// budget is how many tokens of an answer are for thinking, where that is said.
func budget(fields map[string]json.RawMessage) int64 {
	var thinking struct {
		Budget int64 `json:"budget_tokens"`
	}
	if json.Unmarshal(fields["thinking"], &thinking) != nil {
		return 0
	}
	return max(0, thinking.Budget)
}

// checkBudget finds what the API would refuse for every instance.
func (c Config) checkBudget(fields map[string]json.RawMessage) error {
	most := c.maxTokens(fields)
	if own, ok := fields["max_tokens"]; ok && json.Unmarshal(own, &most) != nil {
		return fmt.Errorf("model kwargs: max_tokens: %s is not a number of tokens", own)
	}
	if b := budget(fields); b > 0 && b >= most {
		return fmt.Errorf("model kwargs: thinking: a budget of %d tokens leaves nothing of the %d of an answer; raise max_tokens", b, most)
	}
	return nil
}
