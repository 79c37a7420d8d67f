package settings

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// findProvider returns the provider of a model name, and the name that its server has for the
// model. Names of Claude and GPT models need no prefix.
func findProvider(name string) (p configs.Provider, short string, ok bool) {
	switch prefix, rest, hasPrefix := strings.Cut(name, "/"); {
	case strings.HasPrefix(name, "claude-") && !hasPrefix:
		return configs.Providers["anthropic"], name, true
	case strings.HasPrefix(name, "gpt-") && !hasPrefix:
		return configs.Providers["openai"], name, true
	case hasPrefix && rest != "":
		p, ok = configs.Providers[prefix]
		return p, rest, ok
	}
	return configs.Provider{}, name, false
}

// implyModel adds the settings that the name of the model implies to layers: its class, address and key
// variable, and the name without the provider. They are in place of the layer with the name, so that
// they override the settings below that layer; explicit settings are kept, unless their layer lies
// below that of the name and names another model. A server with a configured address has its own
// names: only the prefixes of that address and of local servers are removed. local is the value for
// --local that the name implies, or "".
func implyModel(layers []configs.Layer, isExplicit func(layer string) bool) (_ []configs.Layer, local string, err error) {
	overlay := configs.NewOverlay(layers...)
	class := overlay.Value("model.model_class")
	if class == "scripted" || overlay.Value("model.route.kind") != "" {
		return layers, "", nil
	}
	origin, hasOrigin := overlay.Origin("model.model_name")
	isKept := func(key string) bool {
		keyOrigin, ok := overlay.Origin(key)
		isOfOtherModel := keyOrigin.Layer != origin.Layer && slices.ContainsFunc(layers, func(l configs.Layer) bool {
			return l.Name == keyOrigin.Layer && l.Value("model.model_name") != ""
		})
		return ok && isExplicit(keyOrigin.Layer) && !isOfOtherModel
	}
	p, short, ok := findProvider(overlay.Value("model.model_name"))
	if !ok || !hasOrigin || p.Answer != "" || p.Class != class && isKept("model.model_class") {
		return layers, "", nil
	}
	address := cmp.Or(overlay.Value("model.base_url"), providerAddress(class))
	isAtAddress := address != "" && address == p.BaseURL
	isVariable := strings.HasSuffix(origin.Layer, "MSWEA_MODEL_NAME") && p.BaseURL == "" && p.Class == class
	settings := [][2]string{{"model.model_name", strconv.Quote(short)}}
	switch {
	case address != "" && !isAtAddress && !isVariable && p.Local == "":
		return layers, "", nil
	case address != "":
	case p.Local != "":
		local = cmp.Or(os.Getenv(p.LocalEnv), p.Local)
	case p.Class != class || p.BaseURL != "":
		for _, s := range [][2]string{{"model.model_class", p.Class}, {"model.base_url", strconv.Quote(p.BaseURL)}, {"model.api_key_env", p.KeyEnv}} {
			if s[1] != `""` && !isKept(s[0]) {
				settings = append(settings, s)
			}
		}
	}
	added, err := SettingLayers(origin.Layer, settings) // the origin of the name is that of what it implies
	if err != nil {
		return nil, "", err
	}
	for i := len(layers) - 1; i >= 0; i-- {
		if layers[i].Name == origin.Layer {
			return slices.Insert(slices.Clone(layers), i+1, added...), local, nil
		}
	}
	return layers, local, nil
}

// providerAddress returns the address in the provider's variables of a model class, or "".
func providerAddress(class string) string {
	address := ""
	for _, v := range configs.ProviderVariables[class] {
		if v.Key == "model.base_url" {
			later, _ := configs.ProviderURL(v.Name)
			address = cmp.Or(later, address)
		}
	}
	return address
}

// checkProviderKey returns an error if the address of the model is that of a provider, and the key
// of that provider is missing.
func (c *Flags) checkProviderKey(cfg *configs.Resolved) error {
	address, _ := cfg.Origin("model.base_url")
	if cfg.Model.BaseURL == "" || address.Layer == "--local" || address.Layer == configs.RequestLayer || os.Getenv(cfg.Model.APIKeyEnv) != "" {
		return nil
	}
	for _, p := range configs.Providers {
		if p.BaseURL == cfg.Model.BaseURL {
			return usage.Errorf("no key for %s: set the environment variable %s, or run mini config set %[2]s", p.BaseURL, cfg.Model.APIKeyEnv)
		}
	}
	return nil
}

// peerClass returns the prefix of model names that a model class of mini-swe-agent in --model-class
// stands for; ok is false for other classes.
func peerClass(set *pflag.FlagSet) (prefix string, ok bool) {
	f := set.Lookup("model-class")
	if f == nil || !f.Changed {
		return "", false
	}
	switch f.Value.String() {
	case "litellm", "litellm_textbased":
		return "", true
	case "openrouter", "openrouter_textbased":
		return "openrouter/", set.Changed("model")
	}
	return "", false
}

// MergeModel is configs.Merge with the settings that the name of the model implies.
func MergeModel(layers ...configs.Layer) (*configs.Resolved, error) {
	layers, _, err := implyModel(layers, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	return configs.Merge(layers...)
}

// CheckModelNames returns an error for model names that OpenAI or Anthropic do not have: names with
// a prefix of litellm, and names of the other provider's models. A server with a configured address may
// have models of any name.
func CheckModelNames(cfg *configs.Resolved) error {
	for _, one := range configs.ModelConfigs(cfg) {
		if one.Model.Class == "scripted" || one.Model.BaseURL != "" {
			continue
		}
		if err := checkModelName(one.Model.Name, one.Model.Class); err != nil {
			return err
		}
	}
	return nil
}

func checkModelName(name, class string) error {
	p, short, ok := findProvider(name)
	switch {
	case p.Answer != "":
		return usage.Errorf("model %.80q: %s", name, strings.ReplaceAll(p.Answer, "NAME", short))
	case ok && p.Class != class && p.Class == "anthropic":
		return usage.Errorf("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s, or -c model.base_url=URL for a server that has it", name, short)
	case ok && p.Class != class && p.BaseURL == "" && p.Local == "", !ok && strings.Contains(name, "/") && class == "anthropic":
		return usage.Errorf("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", name)
	case ok && short != name && p.BaseURL == "" && p.Local == "": // a model of a route, since implyModel removes other prefixes
		return usage.Errorf("model %.80q: the provider is not part of the name here; use %.80s", name, short)
	case ok && p.BaseURL != "":
		return usage.Errorf("model %.80q: use the name %.80s with base_url: %s and api_key_env: %s", name, short, p.BaseURL, p.KeyEnv)
	case ok && p.Local != "":
		return nil // --local finds the address
	case strings.Contains(name, "/"):
		return usage.Errorf("model %.80q: OpenAI has no such model; for another provider set the address of its OpenAI-compatible API: -c model.base_url=URL", name)
	}
	return nil
}
