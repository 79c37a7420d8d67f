// Package vllm is a fake of vLLM's chat completions for tests, with the ids and log probabilities of tokens. It keeps
// books of what it made and sampled, which tests compare with what mini kept.
//
// Its tokenizer has the rules of real ones: a text is cut into pieces, and the ids of the pieces of a text do not
// depend on the texts around it, because special tokens stand between messages. With Drift, it samples some words of
// replies in other pieces than the tokenizer makes of them, as models do.
package vllm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/minibench/mini/model"
)

// Call is a call that was answered.
type Call struct{ model.Tokens }

// Server answers POST /chat/completions. It is safe for concurrent use.
type Server struct {
	// Reply returns the reply to a conversation of n messages. The conversation is the value of the header
	// X-Conversation.
	Reply func(conversation string, messages []model.Message) string
	// Drift is the share of replies with a word in other pieces. Faults is the share of requests that fail.
	Drift, Faults float64
	// OldForm returns ids as the texts of the log probabilities, as older versions do. Silent returns none.
	OldForm, Silent bool

	mu     sync.Mutex
	random *rand.Rand
	ids    map[string]int32
	books  map[string][]Call
}

// Calls returns the books of a conversation, in the order of the answers.
func (s *Server) Calls(conversation string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.books[conversation]
}

// request has the fields that the server reads.
type request struct {
	Messages []struct {
		Role    model.Role `json:"role"`
		Content string     `json:"content"`
	} `json:"messages"`
	Stream         bool `json:"stream"`
	ReturnTokenIDs bool `json:"return_token_ids"`
	Logprobs       bool `json:"logprobs"`
	TopLogprobs    *int `json:"top_logprobs"`
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.random == nil {
		s.random, s.ids, s.books = rand.New(rand.NewPCG(1, 2)), map[string]int32{}, map[string][]Call{} //nolint:gosec // for tests
	}
	if s.random.Float64() < s.Faults {
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error": {"message": "the engine is overloaded"}}`, http.StatusServiceUnavailable)
		return
	}
	conversation := r.Header.Get("X-Conversation")
	var messages []model.Message
	var call Call
	for _, m := range req.Messages {
		messages = append(messages, model.Message{Role: m.Role, Content: m.Content})
		call.Prompt = append(call.Prompt, s.id("<|"+string(m.Role)+"|>"))
		for _, piece := range pieces(m.Content) {
			call.Prompt = append(call.Prompt, s.id(piece))
		}
		call.Prompt = append(call.Prompt, s.id("<|end|>"))
	}
	call.Prompt = append(call.Prompt, s.id("<|assistant|>"))
	text := s.Reply(conversation, messages)
	call.Texts = pieces(text)
	if s.random.Float64() < s.Drift {
		call.Texts = s.splitOne(call.Texts)
	}
	call.Texts = append(call.Texts, "<|end|>")
	for _, piece := range call.Texts {
		call.Completion = append(call.Completion, s.id(piece))
		call.Logprobs = append(call.Logprobs, -s.random.Float64())
	}
	s.books[conversation] = append(s.books[conversation], call)
	asked := req.ReturnTokenIDs && req.Logprobs && req.TopLogprobs != nil && !s.Silent
	s.answer(w, req.Stream, asked, text, call)
}

// pieces cuts a text as the tokenizer does.
func pieces(text string) []string {
	return regexp.MustCompile(`\s?\w{1,5}|\s?[^\w\s]|\s+`).FindAllString(text, -1)
}

// splitOne cuts a piece of several characters in two.
func (s *Server) splitOne(texts []string) []string {
	for _, i := range s.random.Perm(len(texts)) {
		if piece := []rune(texts[i]); len(piece) > 2 {
			return append(append(append([]string(nil), texts[:i]...), string(piece[:2]), string(piece[2:])), texts[i+1:]...)
		}
	}
	return texts
}

// id returns the id of a piece.
func (s *Server) id(piece string) int32 {
	id, ok := s.ids[piece]
	if !ok {
		id = int32(len(s.ids)) + 100
		s.ids[piece] = id
	}
	return id
}

// answer writes an answer, streamed in chunks of up to three tokens.
func (s *Server) answer(w http.ResponseWriter, stream, tokens bool, text string, call Call) {
	type object = map[string]any
	logprobs := func(from, to int) any {
		var list []object
		for i := from; i < to; i++ {
			token := call.Texts[i]
			if s.OldForm {
				token = fmt.Sprintf("token_id:%d", call.Completion[i])
			}
			list = append(list, object{"token": token, "logprob": call.Logprobs[i], "bytes": nil, "top_logprobs": []any{}})
		}
		return object{"content": list}
	}
	usage := object{"prompt_tokens": len(call.Prompt), "completion_tokens": len(call.Completion), "total_tokens": len(call.Prompt) + len(call.Completion)}
	n := len(call.Completion)
	if !stream {
		choice := object{"index": 0, "message": object{"role": "assistant", "content": text}, "finish_reason": "stop"}
		answer := object{"object": "chat.completion", "model": "fake", "choices": []any{choice}, "usage": usage}
		if tokens {
			answer["prompt_token_ids"], choice["logprobs"] = call.Prompt, logprobs(0, n)
			if !s.OldForm {
				choice["token_ids"] = call.Completion
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client may have left
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(v object) {
		data, _ := json.Marshal(v)                  // only values that can be encoded
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data) // the client may have left
	}
	first := object{"object": "chat.completion.chunk", "choices": []any{object{"index": 0, "delta": object{"role": "assistant", "content": ""}}}}
	if tokens {
		first["prompt_token_ids"] = call.Prompt
	}
	send(first)
	for from := 0; from < n; from += 3 {
		to := min(n, from+3)
		choice := object{"index": 0, "delta": object{"content": strings.TrimSuffix(strings.Join(call.Texts[from:to], ""), "<|end|>")}}
		if tokens {
			choice["logprobs"] = logprobs(from, to)
			if !s.OldForm {
				choice["token_ids"] = call.Completion[from:to]
			}
		}
		if to == n {
			choice["finish_reason"] = "stop"
		}
		send(object{"object": "chat.completion.chunk", "choices": []any{choice}})
	}
	send(object{"object": "chat.completion.chunk", "choices": []any{}, "usage": usage})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n") // the client may have left
}
