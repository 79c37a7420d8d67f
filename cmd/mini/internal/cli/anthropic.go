package cli

import (
	"cmp"
	"os"
	"strings"
	"time"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/anthropic"
	"github.com/minibench/mini/model/openai"
)

// newAnthropic finds the key in the environment. A server of one's own may need
// none.
func newAnthropic(cfg *configs.Resolved) (model.Model, error) {
	m := cfg.Model
	if m.Name == "" {
		return nil, usagef("no model is named; use -m NAME, or --model-class scripted")
	}
	key := os.Getenv(m.APIKeyEnv)
	if key == "" && m.BaseURL == "" {
		return nil, usagef("no key: set the environment variable %s, or -c model.base_url=URL for a server that needs none", m.APIKeyEnv)
	}
	am, err := anthropic.New(anthropic.Config{
		Name: m.Name, BaseURL: m.BaseURL, APIKey: key, Kwargs: m.Kwargs, Headers: m.Headers, Stream: m.Stream,
		Timeout: time.Duration(m.Timeout * float64(time.Second)), Price: m.Price, Cache: m.Cache,
	})
	if err != nil {
		return nil, before(err)
	}
	return am, nil
}

// modelsRoot is below which a server has the list of its models. The address of
// one with Anthropic's API may have the "/v1" or not.
func modelsRoot(cfg *configs.Resolved) string {
	if cfg.Model.Class != "anthropic" {
		return cmp.Or(cfg.Model.BaseURL, openai.DefaultBaseURL)
	}
	base := cmp.Or(cfg.Model.BaseURL, anthropic.DefaultBaseURL)
	return strings.TrimSuffix(strings.TrimRight(base, "/"), "/v1") + "/v1"
}
