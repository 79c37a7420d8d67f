package openai_test

import (
	"strings"
	"testing"

	"github.com/minibench/mini/model/modeltest"
	"github.com/minibench/mini/model/openai"
)

func TestNewErrors(t *testing.T) {
	tests := map[string]struct {
		config openai.Config
		want   string
	}{
		"no name":           {openai.Config{}, "model name is missing"},
		"no scheme":         {openai.Config{Name: "m", BaseURL: "localhost:8000/v1"}, "want http:// or https://"},
		"no host":           {openai.Config{Name: "m", BaseURL: "http:///v1"}, "and a host"},
		"password":          {openai.Config{Name: "m", BaseURL: "http://u:0123@h/v1"}, "want no user"},
		"query":             {openai.Config{Name: "m", BaseURL: "http://h/v1?key=0123"}, "set keys in the environment"},
		"not a URL":         {openai.Config{Name: "m", BaseURL: "http://0123 456789\x7f"}, "cannot be parsed"},
		"whole address":     {openai.Config{Name: "m", BaseURL: "http://h/v1/chat/completions/"}, "remove /chat/completions from its end"},
		"broken key":        {openai.Config{Name: "m", APIKey: "sk-0123\n456789"}, "control character"},
		"model in kwargs":   {openai.Config{Name: "m", Kwargs: map[string]any{"model": "x"}}, `"model" is set by mini`},
		"key in kwargs":     {openai.Config{Name: "m", Kwargs: map[string]any{"api_key": "0123"}}, "set keys in the environment"},
		"kwargs of no JSON": {openai.Config{Name: "m", Kwargs: map[string]any{"f": func() {}}}, "model kwargs: f: "},
		"negative timeout":  {openai.Config{Name: "m", Timeout: -1}, "cannot be negative"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := openai.New(test.config)
			if err == nil || !strings.Contains(err.Error(), test.want) || modeltest.ContainsKey(err.Error()) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestConfigNeverPrintsKey(t *testing.T) {
	c := openai.Config{Name: "m", APIKey: secret, BaseURL: "https://example.org/v1", Headers: map[string]string{"X-Team": "456789"}}
	m, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckKeyNeverPrinted(t, c, m)
}
