package configs

// A Provider is what mini knows about a provider of models: it is used for names of models with the
// prefix of litellm, such as "openrouter" in openrouter/qwen/qwen3-coder, for the set-up, and for the
// classes of mini-swe-agent. Its prices are in the table of model/price.
type Provider struct {
	Class   string // client of the model
	BaseURL string // address of its API; "" for the default of the class
	KeyEnv  string // variable with the key
	// Local is the value of --local that the prefix stands for, and LocalEnv litellm's variable
	// with another address.
	Local, LocalEnv string
	Answer          string // what to pass instead, with NAME for the rest of the name, if mini has no client
	// Title is the name in the set-up, "" if it does not offer the provider; Model is the model that it
	// suggests, or "".
	Title, Model string
	ReportsCost  bool // each reply has its cost
}

// Providers are the providers that mini knows, by the prefixes of litellm.
var Providers = map[string]Provider{
	"openai":       {Class: "openai", KeyEnv: "OPENAI_API_KEY", Title: "OpenAI", Model: "gpt-5-mini"},
	"anthropic":    {Class: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", Title: "Anthropic", Model: "claude-sonnet-4-5"},
	"cerebras":     {Class: "openai", BaseURL: "https://api.cerebras.ai/v1", KeyEnv: "CEREBRAS_API_KEY", Title: "Cerebras"},
	"dashscope":    {Class: "openai", BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", KeyEnv: "DASHSCOPE_API_KEY", Title: "DashScope"},
	"deepinfra":    {Class: "openai", BaseURL: "https://api.deepinfra.com/v1/openai", KeyEnv: "DEEPINFRA_API_KEY", Title: "DeepInfra"},
	"deepseek":     {Class: "openai", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY", Title: "DeepSeek"},
	"fireworks_ai": {Class: "openai", BaseURL: "https://api.fireworks.ai/inference/v1", KeyEnv: "FIREWORKS_AI_API_KEY", Title: "Fireworks"},
	"gemini":       {Class: "openai", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyEnv: "GEMINI_API_KEY", Title: "Gemini"},
	"groq":         {Class: "openai", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY", Title: "Groq"},
	"mistral":      {Class: "openai", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY", Title: "Mistral"},
	"moonshot":     {Class: "openai", BaseURL: "https://api.moonshot.ai/v1", KeyEnv: "MOONSHOT_API_KEY", Title: "Moonshot"},
	"nvidia_nim":   {Class: "openai", BaseURL: "https://integrate.api.nvidia.com/v1", KeyEnv: "NVIDIA_NIM_API_KEY", Title: "NVIDIA"},
	"openrouter":   {Class: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", Title: "OpenRouter", Model: "openai/gpt-5-mini", ReportsCost: true},
	"together_ai":  {Class: "openai", BaseURL: "https://api.together.xyz/v1", KeyEnv: "TOGETHERAI_API_KEY", Title: "Together"},
	"xai":          {Class: "openai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY", Title: "xAI"},
	"zai":          {Class: "openai", BaseURL: "https://api.z.ai/api/paas/v4", KeyEnv: "ZAI_API_KEY", Title: "Z.ai"},

	"hosted_vllm": {Class: "openai", Local: "vllm", LocalEnv: "HOSTED_VLLM_API_BASE"},
	"lm_studio":   {Class: "openai", Local: "http://127.0.0.1:1234", LocalEnv: "LM_STUDIO_API_BASE"},
	"ollama":      {Class: "openai", Local: "ollama", LocalEnv: "OLLAMA_API_BASE"},
	"ollama_chat": {Class: "openai", Local: "ollama", LocalEnv: "OLLAMA_API_BASE"},

	"azure":         {Answer: "pass -m DEPLOYMENT -c model.base_url=https://RESOURCE.openai.azure.com/openai/v1 -c model.api_key_env=AZURE_API_KEY"},
	"bedrock":       {Answer: proxyAnswer},
	"sagemaker":     {Answer: proxyAnswer},
	"vertex_ai":     {Answer: proxyAnswer},
	"litellm_proxy": {Answer: "pass -m NAME -c model.base_url=URL -c model.api_key_env=LITELLM_PROXY_API_KEY"},
	"huggingface":   {Answer: "pass -m NAME -c model.base_url=https://router.huggingface.co/v1 -c model.api_key_env=HF_TOKEN"},
}

// proxyAnswer is the answer for providers without an API of OpenAI's or Anthropic's form.
const proxyAnswer = "mini has no client for it; start a proxy with OpenAI's API, such as litellm's, and pass -m NAME -c model.base_url=URL"
