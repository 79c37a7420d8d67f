package openai

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/minibench/mini/model"
)

// errNoTokens is the error of a reply without token ids.
var errNoTokens = &model.Error{
	Status: model.BadRequest, Err: errors.New("the server sends no token ids"),
	Hint: "model.tokens needs a server that returns them for return_token_ids, such as vLLM 0.11 or newer; leave it out for others",
}

// tokenList is the part of an answer that has tokens, in the form of vLLM.
type tokenList struct {
	Prompt  []int32 `json:"prompt_token_ids"`
	Choices []struct {
		IDs      []int32 `json:"token_ids"`
		Logprobs struct {
			Content []struct {
				Token   string  `json:"token"`
				Logprob float64 `json:"logprob"`
			} `json:"content"`
		} `json:"logprobs"`
	} `json:"choices"`
}

// TokenFields returns the fields of a request that ask vLLM (0.11 or newer) for tokens. With top_logprobs null, vLLM
// sends no log probabilities.
func TokenFields() map[string]json.RawMessage {
	return map[string]json.RawMessage{
		"return_token_ids": json.RawMessage("true"), "logprobs": json.RawMessage("true"), "top_logprobs": json.RawMessage("0"),
	}
}

// TakeTokens moves the tokens from reply.Raw to reply.Tokens. It returns an error if the server sent none.
func TakeTokens(reply *model.Reply) error {
	var list tokenList
	if err := json.Unmarshal(reply.Raw, &list); err != nil || len(list.Choices) == 0 {
		return errNoTokens
	}
	choice := list.Choices[0]
	tokens := &model.Tokens{Prompt: list.Prompt, Completion: choice.IDs}
	for _, c := range choice.Logprobs.Content {
		tokens.Logprobs, tokens.Texts = append(tokens.Logprobs, c.Logprob), append(tokens.Texts, c.Token)
	}
	if tokens.Completion == nil {
		tokens.Completion = idsOf(tokens)
	}
	if len(tokens.Prompt) == 0 || len(tokens.Completion) == 0 {
		return errNoTokens
	}
	if len(tokens.Logprobs) != len(tokens.Completion) {
		tokens.Logprobs, tokens.Texts = nil, nil
	}
	reply.Tokens, reply.Raw = tokens, RemoveTokens(reply.Raw, true, true)
	return nil
}

// idsOf returns the ids of tokens whose texts are "token_id:123", an older form of vLLM's, and removes these texts;
// nil for other texts.
func idsOf(t *model.Tokens) []int32 {
	var ids []int32
	for _, text := range t.Texts {
		digits, ok := strings.CutPrefix(text, "token_id:")
		id, err := strconv.ParseInt(digits, 10, 32)
		if !ok || err != nil {
			return nil
		}
		ids = append(ids, int32(id))
	}
	t.Texts = nil
	return ids
}

// RemoveTokens returns an answer or a chunk of a stream without its token ids, its log probabilities or both. Data of
// another form is returned as it is.
func RemoveTokens(data json.RawMessage, ids, logprobs bool) json.RawMessage {
	var answer map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(data, &answer) != nil || json.Unmarshal(answer["choices"], &choices) != nil {
		return data
	}
	if ids {
		delete(answer, "prompt_token_ids")
	}
	for _, c := range choices {
		if ids {
			delete(c, "token_ids")
		}
		if logprobs {
			delete(c, "logprobs")
		}
	}
	if answer["choices"], _ = json.Marshal(choices); answer["choices"] == nil { // cannot fail: all values came from JSON
		return data
	}
	short, err := json.Marshal(answer)
	if err != nil {
		return data
	}
	return short
}
