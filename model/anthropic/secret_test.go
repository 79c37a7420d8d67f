package anthropic_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/modeltest"
)

func TestNewErrors(t *testing.T) {
	kwargs := func(name string, value any) anthropic.Config {
		return anthropic.Config{Name: "m", Kwargs: map[string]any{name: value}}
	}
	tests := map[string]struct {
		config anthropic.Config
		want   string
	}{
		"no name":           {anthropic.Config{}, "model name is missing"},
		"no scheme":         {anthropic.Config{Name: "m", BaseURL: "localhost:8000"}, "want http:// or https://"},
		"no host":           {anthropic.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {anthropic.Config{Name: "m", BaseURL: "http://u:0123@h"}, "want no user"},
		"query":             {anthropic.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "set keys in the environment"},
		"not a URL":         {anthropic.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {anthropic.Config{Name: "m", BaseURL: "http://h/v1/messages/"}, "remove /messages from its end"},
		"broken key":        {anthropic.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"header name":       {anthropic.Config{Name: "m", Headers: map[string]string{"a b": "c"}}, `header "a b"`},
		"header value":      {anthropic.Config{Name: "m", Headers: map[string]string{"a": "0123\n"}}, `header "a"`},
		"key as header":     {anthropic.Config{Name: "m", Headers: map[string]string{"X-API-Key": "0123"}}, "set keys in the environment"},
		"token as header":   {anthropic.Config{Name: "m", Headers: map[string]string{"authorization": "Bearer 0123"}}, "set keys in the environment"},
		"model in kwargs":   {kwargs("model", "x"), `"model" is set by mini`},
		"system in kwargs":  {kwargs("system", "x"), `"system" is set by mini`},
		"key in kwargs":     {kwargs("api_key", "0123"), "set keys in the environment"},
		"tools in kwargs":   {anthropic.Config{Name: "m", Tools: bash, Kwargs: map[string]any{"tools": []any{}}}, `"tools" is set by mini`},
		"kwargs of no JSON": {kwargs("f", func() {}), "model kwargs: f: "},
		"betas":             {kwargs("betas", "one"), "want a list of names"},
		"beta of two lines": {kwargs("betas", []string{"a\r\nx: y"}), "is not a name"},
		"max_tokens":        {kwargs("max_tokens", "many"), "is not a number of tokens"},
		"no room to answer": {anthropic.Config{Name: "m", MaxTokens: 1000, Kwargs: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1000}}}, "uses up the max_tokens of 1000"},
		"tool of no schema": {anthropic.Config{Name: "m", Tools: []model.ToolDefinition{{Name: "bash"}}}, "JSON Schema"},
		"cache":             {anthropic.Config{Name: "m", Cache: "2h"}, `cache "2h"`},
		"negative timeout":  {anthropic.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || modeltest.ContainsKey(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestConfigNeverPrintsKey(t *testing.T) {
	c := anthropic.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org", Headers: map[string]string{"X-Team": "456789"}}
	m, err := anthropic.New(c)
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckKeyNeverPrinted(t, c, m)
	if !strings.Contains(c.String(), "X-Team") {
		t.Errorf("%v does not say that there is a header", c)
	}
}
