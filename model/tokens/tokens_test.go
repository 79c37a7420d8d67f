package tokens_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/tokens"
)

func TestWhichVocabulary(t *testing.T) {
	// One text that the vocabularies and the estimate by length count differently.
	const text = "日本語のテキスト、日本語のテキスト identifiers_with_underscores = 1234567890"
	newer, older, length := tokens.For("gpt-4o").Text(text), tokens.For("gpt-4").Text(text), tokens.For("qwen3-coder").Text(text)
	if newer == older || newer == length || older == length {
		t.Fatalf("the text tells nothing apart: %d, %d, %d", newer, older, length)
	}
	tests := map[string]int64{
		"gpt-5-mini": newer, "gpt-5.4": newer, "gpt-4.1-nano": newer, "o3": newer, "o4-mini": newer, "openai/gpt-4o-mini": newer,
		"openrouter/openai/gpt-5": newer, "GPT-5": newer, "gpt-oss:20b": newer,
		"gpt-4": older, "gpt-4-turbo": older, "gpt-3.5-turbo": older,
		"claude-sonnet-5": length, "o1ne": length, "gpt-50": length, "": length, "openai/": length, "deepseek-chat": length,
	}
	for name, want := range tests {
		if got := tokens.For(name).Text(text); got != want {
			t.Errorf("%q: %d tokens, want %d", name, got, want)
		}
		if exact := tokens.For(name).Exact(); exact != (want != length) {
			t.Errorf("%q: exact is %v", name, exact)
		}
	}
}

func TestText(t *testing.T) {
	exact, rough := tokens.For("gpt-4o"), tokens.For("some-model")
	code := strings.Repeat("func (c Counter) Text(text string) int64 {\n", 10_000) // 430 kB: several pieces
	one := exact.Text("func (c Counter) Text(text string) int64 {\n")
	tests := map[string]struct {
		counter tokens.Counter
		text    string
		want    int64
	}{
		"nothing":               {exact, "", 0},
		"nothing, roughly":      {rough, "", 0},
		"a word":                {exact, "hello", 1},
		"a word, roughly":       {rough, "hello", 2},
		"pieces that are lines": {exact, code, 10_000 * one},
		"bytes, roughly":        {rough, "\xff\xfe\xfd\xfc", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.counter.Text(test.text); got != test.want {
				t.Errorf("%d tokens, want %d", got, test.want)
			}
		})
	}
	for name, text := range map[string]string{
		"one letter": strings.Repeat("a", 300_000), "one line of another script": strings.Repeat("中", 100_000), "no UTF-8": strings.Repeat("\xff", 100_000),
	} {
		if n := exact.Text(text); n < int64(len(text))/16 || n > int64(len(text)) {
			t.Errorf("%s: %d tokens of %d bytes", name, n, len(text))
		}
	}
}

func TestMessages(t *testing.T) {
	c := tokens.For("gpt-4o")
	plain := c.Messages([]model.Message{{Role: model.User, Content: "hello"}})
	if plain != 5 {
		t.Errorf("a word in a message has %d tokens, want 5", plain)
	}
	with := c.Messages([]model.Message{{
		Role: model.Assistant, Content: "hello", Images: []model.Image{{}}, Calls: []model.Call{{Name: "bash", Arguments: `{"command":"ls"}`}},
	}})
	if with < plain+1000+5 {
		t.Errorf("a picture and a call make it %d", with)
	}
}

func TestNamed(t *testing.T) {
	const text = "日本語のテキスト identifiers_with_underscores = 1234567890"
	for name, like := range map[string]string{"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"} {
		c, ok := tokens.Named(name)
		if got, want := c.Text(text), tokens.For(like).Text(text); !ok || got != want {
			t.Errorf("%s: %d tokens, %v; want %d", name, got, ok, want)
		}
	}
	if _, ok := tokens.Named("gpt-4o"); ok {
		t.Error("the name of a model is taken for that of a vocabulary")
	}
}
