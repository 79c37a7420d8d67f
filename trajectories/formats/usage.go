package formats

import (
	"encoding/json"
	"math"

	"github.com/minibench/mini/model"
)

// response has the fields of a provider's response that this package reads. OpenAI's chat
// completions and Responses API and Anthropic's API use different names.
type response struct {
	Model string `json:"model"`
	Usage *struct {
		Prompt     float64 `json:"prompt_tokens"`
		Completion float64 `json:"completion_tokens"`
		Input      float64 `json:"input_tokens"`
		Output     float64 `json:"output_tokens"`
		CacheRead  float64 `json:"cache_read_input_tokens"`
		CacheWrite float64 `json:"cache_creation_input_tokens"`

		PromptDetails     *tokenDetails `json:"prompt_tokens_details"`
		InputDetails      *tokenDetails `json:"input_tokens_details"`
		CompletionDetails *tokenDetails `json:"completion_tokens_details"`
		OutputDetails     *tokenDetails `json:"output_tokens_details"`
	} `json:"usage"`
	Choices []struct {
		Finish  model.FinishReason `json:"finish_reason"`
		Message json.RawMessage    `json:"message"`
	} `json:"choices"`
}

type tokenDetails struct {
	Cached    float64 `json:"cached_tokens"`
	Reasoning float64 `json:"reasoning_tokens"`
}

// readResponse decodes a response and returns its usage. It returns zero values if raw
// cannot be decoded.
func readResponse(raw json.RawMessage) (response, model.Usage) {
	var r response
	if json.Unmarshal(raw, &r) != nil {
		return response{}, model.Usage{}
	}
	return r, r.usage()
}

func (r response) usage() model.Usage {
	u := r.Usage
	if u == nil {
		return model.Usage{}
	}
	usage := model.Usage{
		Prompt: tokenCount(u.Prompt + u.Input), Completion: tokenCount(u.Completion + u.Output),
		CacheRead: tokenCount(u.CacheRead), CacheWrite: tokenCount(u.CacheWrite),
	}
	if u.Prompt == 0 && u.Input > 0 && u.InputDetails == nil {
		usage.Prompt += usage.CacheRead + usage.CacheWrite // Anthropic's input tokens do not include them
	}
	for _, d := range []*tokenDetails{u.PromptDetails, u.InputDetails} {
		if d != nil && d.Cached > 0 {
			usage.CacheRead = tokenCount(d.Cached)
		}
	}
	for _, d := range []*tokenDetails{u.CompletionDetails, u.OutputDetails} {
		if d != nil {
			usage.Reasoning = max(usage.Reasoning, tokenCount(d.Reasoning))
		}
	}
	return usage
}

// tokenCount converts a token count from a file. It returns 0 if the count is not
// plausible.
func tokenCount(n float64) int64 {
	if !(n > 0) || n > math.MaxInt32*1e3 {
		return 0
	}
	return int64(n)
}
