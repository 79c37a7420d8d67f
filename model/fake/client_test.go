package fake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
)

// library is go-openai talking to a server in memory.
func library(l *fake.Memory) *openai.Client {
	c := openai.DefaultConfig("sk-marker")
	c.BaseURL, c.HTTPClient = "http://fake/v1", client(l)
	return openai.NewClientWithConfig(c)
}

var bashTool = openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
	Name: "bash", Parameters: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`),
}}

// A client library has a conversation with tool calls, thinking and usage.
func TestGoOpenAI(t *testing.T) {
	s, l, stop := serve(t, fake.Config{})
	defer stop()
	c := library(l)
	history := []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}
	first, err := c.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "m", Messages: history, Tools: []openai.Tool{bashTool}})
	if err != nil {
		t.Fatal(err)
	}
	said := first.Choices[0]
	if said.FinishReason != "tool_calls" || said.Message.Content != "Look." || said.Message.ReasoningContent != "Where am I?" {
		t.Errorf("%+v", said)
	}
	if calls := said.Message.ToolCalls; len(calls) != 1 || calls[0].Function.Name != "bash" || calls[0].Function.Arguments != `{"command":"ls"}` {
		t.Errorf("%+v", calls)
	}
	history = append(history, said.Message, openai.ChatCompletionMessage{Role: "tool", ToolCallID: said.Message.ToolCalls[0].ID, Content: "README"})
	second, err := c.CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{
		Model: "m", Messages: history, Tools: []openai.Tool{bashTool}, StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	var text, finish string
	usage := &openai.Usage{}
	for {
		chunk, err := second.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			finish += string(choice.FinishReason)
		}
		if chunk.Usage != nil {
			usage = chunk.Usage
		}
	}
	if text != "Done." || finish != "stop" {
		t.Errorf("%q, finished by %q", text, finish)
	}
	b := s.Books()
	want := first.Usage.PromptTokens + usage.PromptTokens
	if b.Charged.Replies != 2 || int(b.Charged.Usage.Prompt) != want || usage.PromptTokensDetails.CachedTokens == 0 ||
		b.Requests[1].Step != 2 || !b.Requests[1].Stream || !b.Requests[1].Key {
		t.Errorf("charged %v, the client counts %d\n%+v", b.Charged, want, b.Requests)
	}
}

// How the library sees what it is given; it tells some faults apart, and others
// not, which is why there is this server.
func TestGoOpenAISeesFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"rate-limit": "status code: 429", "overloaded": "status code: 503", "bad-gateway": "502",
		"context": "maximum context length", "reset": "EOF", "drop": "unexpected EOF",
		"bad-json": "unexpected EOF", "error-event": "",
	} {
		s, l, stop := serve(t, fake.Config{Plan: &fake.Plan{Rules: []fake.Rule{{Faults: []string{fault}}}}})
		_, err := library(l).CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}})
		if got := fmt.Sprint(err); !strings.Contains(got, want) || (err == nil) != (want == "") {
			t.Errorf("%s: %s, want %s", fault, got, want)
		}
		stop()
		if b := s.Books(); b.Seen != 1 {
			t.Errorf("%s: %d requests", fault, b.Seen)
		}
	}
}

// patient asks until it has the reply, as a client should, and keeps accounts.
type patient struct {
	http  *http.Client
	usage model.Usage
	calls int
}

func (p *patient) ask(ctx context.Context, body string) error {
	for {
		p.calls++
		wait, err := p.try(ctx, body)
		if err == nil {
			return nil
		}
		if p.calls > 10_000 {
			return fmt.Errorf("too many requests: %w", err)
		}
		time.Sleep(max(wait, 100*time.Millisecond)) // of the bubble
	}
}

func (p *patient) try(ctx context.Context, body string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://fake/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		wait, _ := time.ParseDuration(resp.Header.Get("Retry-After") + "s")
		return wait, errors.New(resp.Status)
	}
	var answer openai.ChatCompletionResponse
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if len(answer.Choices) == 0 {
		return 0, errors.New("no choices")
	}
	p.usage = p.usage.Add(model.Usage{
		Prompt: int64(answer.Usage.PromptTokens), Completion: int64(answer.Usage.CompletionTokens), CacheRead: int64(answer.Usage.PromptTokensDetails.CachedTokens),
	})
	return 0, nil
}

// 64 workers of 20 steps, with 5 % faults and limits that refuse: what they
// count is what the server charges, to the token.
func TestBatchAgreesWithBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		price := model.Price{Input: 2, Cached: 0.5, Output: 8}
		s, l, stop := serve(t, fake.Config{
			Script: script(t, "["+strings.Repeat(`{content: "some words of a reply", latency: 1}, `, 20)+"]"), Price: price,
			Plan:   &fake.Plan{Rules: []fake.Rule{{Probability: 0.05, Faults: fake.Usual()}}},
			Limits: fake.Limits{Concurrent: 48, RequestsPerMinute: 1200},
		})
		defer stop()
		start := time.Now()
		workers := make([]*patient, 64)
		var all sync.WaitGroup
		for i := range workers {
			w := &patient{http: client(l)}
			workers[i] = w
			all.Go(func() {
				for step := range 20 {
					if err := w.ask(t.Context(), simple("openai", fmt.Sprint("worker ", i), step)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		var sum model.Usage
		for _, w := range workers {
			sum = sum.Add(w.usage)
		}
		b := s.Books()
		if b.Charged.Replies != 64*20 || b.Charged.Usage != sum || b.Abandoned.Replies != 0 {
			t.Errorf("charged %v\ncounted %+v", b.Charged, sum)
		}
		if diff := math.Abs(float64(b.Charged.Cost - price.Of(sum))); diff > 1e-9 {
			t.Errorf("charged %v, counted %v", b.Charged.Cost, price.Of(sum))
		}
		if len(b.Faults) < 5 || b.Limited == 0 || b.Concurrency < 48 {
			t.Errorf("faults %v, %d over the limits, at most %d at a time", b.Faults, b.Limited, b.Concurrency)
		}
		t.Logf("%v of the bubble's time\n%s", time.Since(start), b.Summary())
	})
}
