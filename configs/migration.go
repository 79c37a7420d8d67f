package configs

import "strings"

// MigrationGuide is the page for users of mini-swe-agent; longer hints refer to it.
const MigrationGuide = "docs/coming-from-mini-swe-agent.md"

// migratedKeys has hints for keys of mini-swe-agent 1 and 2 that have another name in
// mini, or that mini does not need; files may have them without effect. It omits keys that mini has in another section,
// because suggest finds these.
var migratedKeys = map[string]string{
	"action_observation_template": "the template is agent.observation_template here",
	"container_timeout":           "a container lives as long as its attempt; agent.wall_time_limit_seconds bounds that",
	"cost_tracking":               "mini continues if a cost is unknown; leave the key out, or set model.price",
	"exec_args":                   "mini starts no client program",
	"deployment_timeout":          "",
	"executable":                  "mini talks to the engine without docker's client; set DOCKER_HOST, also for podman",
	"global_args":                 "mini starts no client program; leave the key out, or set DOCKER_HOST",
	"install_pipx":                "",
	"litellm_model_registry":      "set model.price: {input: 0.25, cached: 0.025, output: 2}, dollars per million tokens",
	"modal_sandbox_kwargs":        "",
	"multimodal_regex":            "files are shown by agent.images.marker, for models that take images",
	"output_path":                 "say -o FILE on the command line",
	"provider":                    "",
	"run_args":                    "network, memory, cpus, user, platform, cap_add and others are keys of environment here",
	"runtime_timeout":             "",
	"set_cache_control":           "servers cache automatically, and for Anthropic mini sets it unless model.cache is off",
	"startup_timeout":             "",
	"task":                        "say -t TASK on the command line",
	"timeout_template":            "agent.observation_template shows timeouts here, as .exception and .timed_out",
}

// migratedItems has hints for keys that other programs use in the items of a list.
var migratedItems = map[string]map[string]string{
	"tools.host": {
		"args":       "command holds the program and its arguments, as [python3, issues.py]",
		"cwd":        "the program runs in mini's own folder; leave the key out, and name the program by its path",
		"parameters": "a program gets its arguments as strings; describe them in usage",
	},
	"tools.mcp": {
		"args":      "command holds the program and its arguments, as [npx, -y, SERVER]",
		"cwd":       "the program runs in mini's own folder; leave the key out, and name the program by its path",
		"headers":   "mini sends no header except a token: token_env names the variable with it",
		"transport": "command or url determines it",
		"type":      "command or url determines it",
	},
}

// migratedKwargs has hints for model_kwargs that litellm handles itself. mini would
// send them to the server, which would reject them.
var migratedKwargs = map[string]string{
	"api_base":            "set model.base_url instead",
	"custom_llm_provider": "set model.base_url to the provider's OpenAI-compatible API instead",
	"drop_params":         "it is an option of litellm, which servers reject; leave it out",
	"extra_headers":       "set model.headers instead",
	"num_retries":         "set model.max_tries instead, which also counts the first attempt",
	"parallel_tool_calls": "servers reject it in requests without tools; leave it out, or set agent.protocol to tools",
}

// migratedClass returns a hint for a class of mini-swe-agent: for a class of models if
// isModel is true, otherwise of environments. It returns "" for an unknown name.
func migratedClass(name string, isModel bool) string {
	short := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	table := migratedEnvironments
	if isModel {
		table = migratedModels
	}
	for _, c := range table {
		if strings.HasPrefix(short, c.prefix) {
			return c.hint
		}
	}
	return ""
}

type classHint struct{ prefix, hint string }

// Classes of mini-swe-agent. A class is a name like litellm_textbased, or the path of a
// Python class (minisweagent.models.litellm_model.LitellmModel); a prefix matches both.
var (
	migratedModels = []classHint{
		{"litellm_response", "mini speaks the chat completions API; use openai, and model.base_url for another server"},
		{"litellmresponse", "mini speaks the chat completions API; use openai, and model.base_url for another server"},
		{"litellm", "use openai, or anthropic, and for a provider that is not OpenAI the address of its compatible API: -c model.base_url=URL -c model.api_key_env=VARIABLE"},
		{"openrouter", "use openai with -c model.base_url=https://openrouter.ai/api/v1 -c model.api_key_env=OPENROUTER_API_KEY"},
		{"requesty", "use openai with -c model.base_url=https://router.requesty.ai/v1 -c model.api_key_env=REQUESTY_API_KEY"},
		{"portkey", "mini cannot send Portkey's key, which has its own header; use openai with the provider's address in model.base_url"},
		{"deterministic", "use scripted, with -c model.replies=FILE"},
		{"roulette", "use the class of its models, and set model.route: {kind: roulette, models: [{model_name: A}, {model_name: B}]}"},
		{"interleaving", "use the class of its models, and set model.route: {kind: interleave, sequence: [0, 1], models: [{model_name: A}, {model_name: B}]}"},
		{"anthropic", "use anthropic"},
	}
	migratedEnvironments = []classHint{
		{"singularity", "mini has no Singularity or Apptainer yet; use docker"},
		{"apptainer", "mini has no Singularity or Apptainer yet; use docker"},
		{"bubblewrap", "use bubblewrap"},
		{"contree", "mini has no ConTree yet; use docker"},
		{"swerex_modal", "mini has no Modal yet; use docker"},
		{"swerexmodal", "mini has no Modal yet; use docker"},
		{"swerex", "use docker"},
		{"podman", "use docker, with DOCKER_HOST naming podman's socket"},
	}
)
