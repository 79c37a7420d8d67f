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

// A provider is what mini does with the model names of one prefix of litellm, such as
// "openrouter" in openrouter/qwen/qwen3-coder.
type provider struct {
	class   string // client of the model
	baseURL string // address of its API; "" for the default of the class
	keyEnv  string // variable with the key
	// local is the value of --local that the prefix stands for, and localEnv litellm's variable
	// with another address.
	local, localEnv string
	answer          string // what to pass instead, with NAME for the rest of the name, if mini has no client
}

// providers are the prefixes of litellm that mini knows.
var providers = map[string]provider{
	"openai":       {class: "openai", keyEnv: "OPENAI_API_KEY"},
	"anthropic":    {class: "anthropic", keyEnv: "ANTHROPIC_API_KEY"},
	"cerebras":     {class: "openai", baseURL: "https://api.cerebras.ai/v1", keyEnv: "CEREBRAS_API_KEY"},
	"dashscope":    {class: "openai", baseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", keyEnv: "DASHSCOPE_API_KEY"},
	"deepinfra":    {class: "openai", baseURL: "https://api.deepinfra.com/v1/openai", keyEnv: "DEEPINFRA_API_KEY"},
	"deepseek":     {class: "openai", baseURL: "https://api.deepseek.com/v1", keyEnv: "DEEPSEEK_API_KEY"},
	"fireworks_ai": {class: "openai", baseURL: "https://api.fireworks.ai/inference/v1", keyEnv: "FIREWORKS_AI_API_KEY"},
	"gemini":       {class: "openai", baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", keyEnv: "GEMINI_API_KEY"},
	"groq":         {class: "openai", baseURL: "https://api.groq.com/openai/v1", keyEnv: "GROQ_API_KEY"},
	"mistral":      {class: "openai", baseURL: "https://api.mistral.ai/v1", keyEnv: "MISTRAL_API_KEY"},
	"moonshot":     {class: "openai", baseURL: "https://api.moonshot.ai/v1", keyEnv: "MOONSHOT_API_KEY"},
	"nvidia_nim":   {class: "openai", baseURL: "https://integrate.api.nvidia.com/v1", keyEnv: "NVIDIA_NIM_API_KEY"},
	"openrouter":   {class: "openai", baseURL: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY"},
	"together_ai":  {class: "openai", baseURL: "https://api.together.xyz/v1", keyEnv: "TOGETHERAI_API_KEY"},
	"xai":          {class: "openai", baseURL: "https://api.x.ai/v1", keyEnv: "XAI_API_KEY"},
	"zai":          {class: "openai", baseURL: "https://api.z.ai/api/paas/v4", keyEnv: "ZAI_API_KEY"},

	"hosted_vllm": {class: "openai", local: "vllm", localEnv: "HOSTED_VLLM_API_BASE"},
	"lm_studio":   {class: "openai", local: "http://127.0.0.1:1234", localEnv: "LM_STUDIO_API_BASE"},
	"ollama":      {class: "openai", local: "ollama", localEnv: "OLLAMA_API_BASE"},
	"ollama_chat": {class: "openai", local: "ollama", localEnv: "OLLAMA_API_BASE"},

	"azure":         {answer: "pass -m DEPLOYMENT -c model.base_url=https://RESOURCE.openai.azure.com/openai/v1 -c model.api_key_env=AZURE_API_KEY"},
	"bedrock":       {answer: proxyAnswer},
	"sagemaker":     {answer: proxyAnswer},
	"vertex_ai":     {answer: proxyAnswer},
	"litellm_proxy": {answer: "pass -m NAME -c model.base_url=URL -c model.api_key_env=LITELLM_PROXY_API_KEY"},
	"huggingface":   {answer: "pass -m NAME -c model.base_url=https://router.huggingface.co/v1 -c model.api_key_env=HF_TOKEN"},
}

// proxyAnswer is the answer for providers without an API of OpenAI's or Anthropic's form.
const proxyAnswer = "mini has no client for it; start a proxy with OpenAI's API, such as litellm's, and pass -m NAME -c model.base_url=URL"

// findProvider returns the provider of a model name, and the name that its server has for the
// model. Names of Claude and GPT models need no prefix.
func findProvider(name string) (p provider, short string, ok bool) {
	switch prefix, rest, hasPrefix := strings.Cut(name, "/"); {
	case strings.HasPrefix(name, "claude-") && !hasPrefix:
		return providers["anthropic"], name, true
	case strings.HasPrefix(name, "gpt-") && !hasPrefix:
		return providers["openai"], name, true
	case hasPrefix && rest != "":
		p, ok = providers[prefix]
		return p, rest, ok
	}
	return provider{}, name, false
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
	if !ok || !hasOrigin || p.answer != "" || p.class != class && isKept("model.model_class") {
		return layers, "", nil
	}
	address := cmp.Or(overlay.Value("model.base_url"), providerAddress(class))
	isAtAddress := address != "" && address == p.baseURL
	isVariable := strings.HasSuffix(origin.Layer, "MSWEA_MODEL_NAME") && p.baseURL == "" && p.class == class
	settings := [][2]string{{"model.model_name", strconv.Quote(short)}}
	switch {
	case address != "" && !isAtAddress && !isVariable && p.local == "":
		return layers, "", nil
	case address != "":
	case p.local != "":
		local = cmp.Or(os.Getenv(p.localEnv), p.local)
	case p.class != class || p.baseURL != "":
		for _, s := range [][2]string{{"model.model_class", p.class}, {"model.base_url", strconv.Quote(p.baseURL)}, {"model.api_key_env", p.keyEnv}} {
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
	if cfg.Model.BaseURL == "" || address.Layer == "--local" || os.Getenv(cfg.Model.APIKeyEnv) != "" {
		return nil
	}
	for _, p := range providers {
		if p.baseURL == cfg.Model.BaseURL {
			return usage.Errorf("no key for %s: set the environment variable %s, or run mini config set %[2]s", p.baseURL, cfg.Model.APIKeyEnv)
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
// a prefix of litellm, and names of the other provider's models.
func CheckModelNames(cfg *configs.Resolved) error {
	for _, model := range configs.ModelConfigs(cfg) {
		if err := checkModelName(model); err != nil {
			return err
		}
	}
	return nil
}

// checkModelName checks the name of one model. A server with a configured address may
// have models of any name.
func checkModelName(cfg *configs.Resolved) error {
	name, class := cfg.Model.Name, cfg.Model.Class
	if class == "scripted" || cfg.Model.BaseURL != "" {
		return nil
	}
	p, short, ok := findProvider(name)
	switch {
	case p.answer != "":
		return usage.Errorf("model %.80q: %s", name, strings.ReplaceAll(p.answer, "NAME", short))
	case ok && p.class != class && p.class == "anthropic":
		return usage.Errorf("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s, or -c model.base_url=URL for a server that has it", name, short)
	case ok && p.class != class && p.baseURL == "" && p.local == "":
		return usage.Errorf("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", name)
	case ok && short != name && p.baseURL == "" && p.local == "": // a model of a route, since implyModel removes other prefixes
		return usage.Errorf("model %.80q: the provider is not part of the name here; use %.80s", name, short)
	case ok && p.baseURL != "":
		return usage.Errorf("model %.80q: use the name %.80s with base_url: %s and api_key_env: %s", name, short, p.baseURL, p.keyEnv)
	case ok && p.local != "":
		return nil // --local finds the address
	case strings.Contains(name, "/") && class == "anthropic":
		return usage.Errorf("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", name)
	case strings.Contains(name, "/"):
		return usage.Errorf("model %.80q: OpenAI has no such model; for another provider set the address of its OpenAI-compatible API: -c model.base_url=URL", name)
	}
	return nil
}
