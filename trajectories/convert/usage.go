package convert

import (
	"encoding/json"
	"math"

	"github.com/minibench/mini/model"
)

// answered is what a provider's response says of a call. The fields of chat
// completions, of the Responses API and of Anthropic have names of their own.
type answered struct {
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
		Finish  model.Finish    `json:"finish_reason"`
		Message json.RawMessage `json:"message"`
	} `json:"choices"`
}

type tokenDetails struct {
	Cached    float64 `json:"cached_tokens"`
	Reasoning float64 `json:"reasoning_tokens"`
}

// readResponse takes what it understands; a response of another form says
// nothing.
func readResponse(raw json.RawMessage) (answered, model.Usage) {
	var a answered
	if json.Unmarshal(raw, &a) != nil {
		return answered{}, model.Usage{}
	}
	return a, a.usage()
}

func (a answered) usage() model.Usage {
	u := a.Usage
	if u == nil {
		return model.Usage{}
	}
	out := model.Usage{
		Prompt: tokens(u.Prompt + u.Input), Completion: tokens(u.Completion + u.Output),
		CacheRead: tokens(u.CacheRead), CacheWrite: tokens(u.CacheWrite),
	}
	if u.Prompt == 0 && u.Input > 0 && u.InputDetails == nil {
		out.Prompt += out.CacheRead + out.CacheWrite // Anthropic counts them beside
	}
	for _, d := range []*tokenDetails{u.PromptDetails, u.InputDetails} {
		if d != nil && d.Cached > 0 {
			out.CacheRead = tokens(d.Cached)
		}
	}
	for _, d := range []*tokenDetails{u.CompletionDetails, u.OutputDetails} {
		if d != nil {
			out.Reasoning = max(out.Reasoning, tokens(d.Reasoning))
		}
	}
	return out
}

// tokens takes a count from a file, which may be any number.
func tokens(n float64) int64 {
	if !(n > 0) || n > math.MaxInt32*1e3 {
		return 0
	}
	return int64(n)
}
