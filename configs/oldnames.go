package configs

import "strings"

// MigrationGuide is the page for users of mini-swe-agent; longer hints refer to it.
const MigrationGuide = "docs/coming-from-mini-swe-agent.md"

// An OldName is a name of mini-swe-agent 1 and 2, of litellm or of the SWE-bench harness, and what
// takes its place.
type OldName struct {
	// Old is a key of a file, "tools.mcp[].KEY" in the items of a list, "KEY=CLASS" for classes that
	// begin so, "environment.run_args --OPTION" of docker run, "-c NAME" of a configuration that
	// comes with mini-swe-agent, "$VARIABLE" or a "--flag" of the harness.
	Old string
	// New is the key that has the value in mini; for a class and "-c NAME" it is the value in mini, with
	// further settings as KEY=VALUE; for a variable, a second key is the limit of a single task that the
	// variable bounds. Empty means that mini has nothing like it.
	New string
	// Why is what to do instead, or why the name has no effect.
	Why string
}

// FindOldName returns the entry with the name old.
func FindOldName(old string) (OldName, bool) {
	for _, n := range OldNames {
		if n.Old == old {
			return n, true
		}
	}
	return OldName{}, false
}

// findOldClass returns the entry for a class in the setting key. A class is a name like
// litellm_textbased, or the path of a Python class (minisweagent.models.litellm_model.LitellmModel).
func findOldClass(key, class string) (OldName, bool) {
	for _, n := range OldNames {
		if prefix, ok := strings.CutPrefix(n.Old, key+"="); ok && strings.HasPrefix(shortClass(class), prefix) {
			return n, true
		}
	}
	return OldName{}, false
}

// shortClass returns the name of a class without the path of its Python module.
func shortClass(name string) string {
	return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
}

const (
	modelClassKey       = "model.model_class"
	environmentClassKey = "environment.environment_class"
	kwargsKey           = "model.model_kwargs"
	runArgsKey          = "environment.run_args"
	whitelistKey        = "agent.whitelist_actions"
)

const (
	noSingularity    = "mini has no Singularity or Apptainer yet"
	noModal          = "mini has no Modal yet"
	chatCompletions  = "mini speaks the chat completions API; use openai, and model.base_url for another server"
	imagesOfRows     = "leave it out; rows name their images"
	imagesStay       = "leave it out; images stay, -c run.image_budget=80GB bounds them, mini images prune removes them"
	ownFolder        = "the program runs in mini's own folder; leave the key out, and name the program by its path"
	commandOrAddress = "command or url determines it"
)

// OldNames are the old names that mini knows. It omits keys that mini has in another section
// and that mini-swe-agent does not have there, because suggest finds these.
var OldNames = []OldName{
	{"model.observation_template", "agent.observation_template", ""},
	{"model.format_error_template", "agent.format_error_template", ""},
	{"model.action_regex", "agent.action_regex", ""},
	{"agent.action_observation_template", "agent.observation_template", "the template is agent.observation_template here"},
	{"agent.timeout_template", "", "agent.observation_template shows timeouts here, as .exception and .timed_out"},
	{whitelistKey, "policy.whitelist_actions", ""},
	{"agent.output_path", "", "say -o FILE on the command line"},
	{"model.litellm_model_registry", "", "set model.price: {input: 0.25, cached: 0.025, output: 2}, dollars per million tokens"},
	{"model.multimodal_regex", "", "files are shown by agent.images.marker, for models that take images"},
	{"model.provider", "", ""},
	{"model.set_cache_control", "", "servers cache automatically, and for Anthropic mini sets it unless model.cache is off"},
	{kwargsKey + ".api_base", "model.base_url", "set model.base_url instead"},
	{kwargsKey + ".custom_llm_provider", "", "set model.base_url to the provider's OpenAI-compatible API instead"},
	{kwargsKey + ".drop_params", "", ""},
	{kwargsKey + ".extra_body", kwargsKey, ""},
	{kwargsKey + ".extra_headers", "model.headers", "set model.headers instead"},
	{kwargsKey + ".num_retries", "model.max_tries", "set model.max_tries instead, which also counts the first attempt"},
	{kwargsKey + ".parallel_tool_calls", "", "servers reject it in requests without tools; leave it out, or set agent.protocol to tools"},
	{"environment.container_timeout", "", "a container lives as long as its attempt; agent.wall_time_limit_seconds bounds that"},
	{"environment.deployment_timeout", "", ""},
	{"environment.exec_args", "", "mini starts no client program"},
	{"environment.executable", "", "mini talks to the engine without docker's client; set DOCKER_HOST, also for podman"},
	{"environment.global_args", "", "mini starts no client program; leave the key out, or set DOCKER_HOST"},
	{"environment.install_pipx", "", ""},
	{"environment.modal_sandbox_kwargs", "", ""},
	{"environment.runtime_timeout", "", ""},
	{"environment.startup_timeout", "", ""},
	{runArgsKey, "", "network, memory, cpus, user, platform, cap_add and others are keys of environment here"},
	{runArgsKey + " --cap-add", "", "add it to the list environment.cap_add"},
	{runArgsKey + " --cpus", "environment.cpus", ""},
	{runArgsKey + " --memory", "environment.memory", ""},
	{runArgsKey + " -m", "environment.memory", ""},
	{runArgsKey + " --network", "environment.network", ""},
	{runArgsKey + " --net", "environment.network", ""},
	{runArgsKey + " --pids-limit", "environment.pids_limit", ""},
	{runArgsKey + " --platform", "environment.platform", ""},
	{runArgsKey + " --runtime", "environment.runtime", ""},
	{runArgsKey + " --shm-size", "environment.shm_size", ""},
	{runArgsKey + " --user", "environment.user", ""},
	{runArgsKey + " -u", "environment.user", ""},
	{"run.task", "", "say -t TASK on the command line"},

	{modelClassKey + "=litellm_response", "model.model_name", chatCompletions},
	{modelClassKey + "=litellmresponse", "model.model_name", chatCompletions},
	{modelClassKey + "=litellm", "model.model_name", "use openai, or anthropic, and for a provider that is not OpenAI the address of its compatible API: -c model.base_url=URL -c model.api_key_env=VARIABLE"},
	{modelClassKey + "=openrouter", "openai model.base_url=https://openrouter.ai/api/v1 model.api_key_env=OPENROUTER_API_KEY", "use openai with -c model.base_url=https://openrouter.ai/api/v1 -c model.api_key_env=OPENROUTER_API_KEY"},
	{modelClassKey + "=requesty", "openai model.base_url=https://router.requesty.ai/v1 model.api_key_env=REQUESTY_API_KEY", "use openai with -c model.base_url=https://router.requesty.ai/v1 -c model.api_key_env=REQUESTY_API_KEY"},
	{modelClassKey + "=portkey", "model.model_name", "mini cannot send Portkey's key, which has its own header; use openai with the provider's address in model.base_url"},
	{modelClassKey + "=deterministic", "", "use scripted, with -c model.replies=FILE"},
	{modelClassKey + "=roulette", "model.route", "use the class of its models, and set model.route: {kind: roulette, models: [{model_name: A}, {model_name: B}]}"},
	{modelClassKey + "=interleaving", "model.route", "use the class of its models, and set model.route: {kind: interleave, sequence: [0, 1], models: [{model_name: A}, {model_name: B}]}"},
	{modelClassKey + "=anthropic", "anthropic", "use anthropic"},
	{environmentClassKey + "=singularity", "docker", noSingularity + "; use docker"},
	{environmentClassKey + "=apptainer", "docker", noSingularity + "; use docker"},
	{environmentClassKey + "=bubblewrap", "bubblewrap", "use bubblewrap"},
	{environmentClassKey + "=contree", "docker", "mini has no ConTree yet; use docker"},
	{environmentClassKey + "=swerex_modal", "docker", noModal + "; use docker"},
	{environmentClassKey + "=swerexmodal", "docker", noModal + "; use docker"},
	{environmentClassKey + "=swerex", "docker", "use docker"},
	{environmentClassKey + "=podman", "docker", "use docker, with DOCKER_HOST naming podman's socket"},

	{"tools.host[].args", "", "command holds the program and its arguments, as [python3, issues.py]"},
	{"tools.host[].cwd", "", ownFolder},
	{"tools.host[].parameters", "", "a program gets its arguments as strings; describe them in usage"},
	{"tools.mcp[].args", "", "command holds the program and its arguments, as [npx, -y, SERVER]"},
	{"tools.mcp[].cwd", "", ownFolder},
	{"tools.mcp[].headers", "", "mini sends no header except a token: token_env names the variable with it"},
	{"tools.mcp[].transport", "", commandOrAddress},
	{"tools.mcp[].type", "", commandOrAddress},

	{"-c default", "mini", ""},
	{"-c mini", "mini", ""},
	{"-c mini_textbased", "mini", ""},
	{"-c default_xml", "mini agent.protocol=xml", ""},
	{"-c benchmarks/swebench", "swebench", ""},
	{"-c benchmarks/swebench_backticks", "swebench", ""},
	{"-c benchmarks/swebench_xml", "swebench agent.protocol=xml", ""},
	{"-c benchmarks/swebench_toolcall", "swebench agent.protocol=tools", ""},
	{"-c benchmarks/swebench_modal", "", noModal + "; leave it out for Docker"},
	{"-c benchmarks/programbench", "", "mini has no ProgramBench"},

	{"$MSWEA_MODEL_NAME", "model.model_name", ""},
	{"$MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "model.max_tries", ""},
	{"$MSWEA_COST_TRACKING", "model.cost_tracking", ""},
	{"$MSWEA_GLOBAL_COST_LIMIT", "run.total_cost_limit agent.cost_limit", ""},
	{"$MSWEA_GLOBAL_CALL_LIMIT", "run.total_calls agent.step_limit", ""},
	{"$MSWEA_MINI_CONFIG_PATH", "", ""},  // a file; see compatLayers in cmd/mini
	{"$MSWEA_CONFIG_DIR", "", ""},        // a folder of files for -c
	{"$MSWEA_GLOBAL_CONFIG_DIR", "", ""}, // the folder of PeerDotenv
	{"$MSWEA_CONFIGURED", "", ""},
	{"$MSWEA_SILENT_STARTUP", "", ""},
	{"$MSWEA_INSPECTOR_STYLE_PATH", "", ""},
	{"$MSWEA_MODEL_API_KEY", "", "set the variable of the provider, such as OPENAI_API_KEY"},
	{"$MSWEA_DEFAULT_RUN", "", "mini has no other entry points"},
	{"$MSWEA_SINGULARITY_EXECUTABLE", "", noSingularity},
	{"$MSWEA_BUBBLEWRAP_EXECUTABLE", "", "mini takes bwrap from the PATH"},
	{"$MSWEA_DOCKER_EXECUTABLE", "", "mini talks to the engine itself; set DOCKER_HOST, also for podman"},
	{"$LITELLM_MODEL_REGISTRY_PATH", "", "set the prices as model.price, to have costs counted"},

	// Flags of swebench.harness.run_evaluation and sb-cli submit.
	{"--dataset_name", "", "use --subset SET"},
	{"--predictions_path", "", "use -p PREDS"},
	{"--instance_ids", "", "use -i ID, once for each"},
	{"--max_workers", "", "use -w N"},
	{"--run_id", "", "use --run-id ID"},
	{"--report_dir", "", "use -o FOLDER, where the official summary is too"},
	{"--output_dir", "", "use -o FOLDER, where the official summary is too"},
	{"--rewrite_reports", "", "use mini grade FOLDER, which judges the saved logs again"},
	{"--overwrite", "", "leave it out; what has a verdict that holds is not run again, and -o names another folder"},
	{"--namespace", "", imagesOfRows},
	{"--instance_image_tag", "", imagesOfRows},
	{"--env_image_tag", "", imagesOfRows},
	{"--force_rebuild", "", "leave it out; mini builds no images"},
	{"--cache_level", "", imagesStay},
	{"--clean", "", imagesStay},
	{"--open_file_limit", "", "leave it out; mini bench says if there are too few"},
	{"--modal", "", "mini runs on container engines; leave it out"},
	{"--gen_report", "", "leave it out; a report is always written"},
	{"--verify_submission", "", "leave it out; predictions are checked before anything runs"},
	{"--wait_for_evaluation", "", "leave it out; mini waits"},
}
