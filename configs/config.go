// Package configs holds mini's configuration: the shipped defaults, and the
// layers on top of them, merged, checked and explained.
//
// Layers, later wins: shipped default < the user's config file < --profile < -c
// FILE < -c key.sub=value < flags. A profile is a choice of the moment among what
// the user has written down for good, so it is above the user's file; what is
// typed beside it is about this one run, so it is above the profile. A key nobody
// knows, a wrong type or a template that does not render is an error that names
// file, line and the nearest key.
// Secrets are not configuration: they come from the environment.
//
//	layer, err := configs.ReadFile("mine.yaml")
//	cfg, err := configs.Merge(configs.Shipped("swebench"), layer)
package configs

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/delegate"
	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/skills"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Config is everything that can be configured. The yaml names are those
// mini-swe-agent's users know, where it has them.
type Config struct {
	Agent       agent.Config `yaml:"agent"`
	Model       Model        `yaml:"model"`
	Environment Environment  `yaml:"environment"`
	Run         Run          `yaml:"run"`
	Eval        Eval         `yaml:"eval"`
	Replay      Replay       `yaml:"replay"`
	// Policy says which commands run, which do not, and which are asked about.
	Policy policy.Config `yaml:"policy"`
	// What commands can ask for by mini-tool; all of it is off unless it is set.
	Tools  tools.Settings  `yaml:"tools"`
	Skills skills.Config   `yaml:"skills"`
	Memory memory.Config   `yaml:"memory"`
	Agents delegate.Config `yaml:"agents"`
}

// Model says which model answers.
type Model struct {
	// Class is "openai" (any server with an OpenAI-compatible API), "anthropic"
	// (any with Anthropic's) or "scripted" (fixed replies from a file).
	Class string `yaml:"model_class" json:"model_class"`
	Name  string `yaml:"model_name" json:"model_name"`
	// BaseURL of the API; empty means OPENAI_BASE_URL or
	// ANTHROPIC_BASE_URL, by Class, else the provider's own.
	BaseURL string `yaml:"base_url" json:"base_url,omitempty"`
	// APIKeyEnv names the environment variable that holds the key; where nobody
	// says it, that is OPENAI_API_KEY or ANTHROPIC_API_KEY, by Class.
	APIKeyEnv string `yaml:"api_key_env" json:"api_key_env,omitempty"`
	// Kwargs are passed in the request's body as they are.
	Kwargs map[string]any `yaml:"model_kwargs" json:"model_kwargs,omitempty"`
	Stream bool           `yaml:"stream" json:"stream,omitempty"`
	// StreamIdle bounds the silences of a stream that has begun, in seconds.
	StreamIdle float64 `yaml:"stream_idle" json:"stream_idle,omitempty"`
	// SendReasoning gives the model its earlier thinking back as
	// reasoning_content, for servers that want it; for the class openai. Those
	// that refuse to go without get it anyway.
	SendReasoning bool `yaml:"send_reasoning" json:"send_reasoning,omitempty"`
	// Headers go with every request to a provider.
	Headers map[string]string `yaml:"headers" json:"headers,omitempty"`
	// Cache is how long the provider is asked to keep a conversation for its next
	// step: "5m" (default), "1h" or "off"; for the class anthropic.
	Cache string `yaml:"cache" json:"cache,omitempty"`
	// Timeout bounds one request, in seconds. MaxTries bounds requests per
	// call, the first included, and MaxWait the seconds between them.
	Timeout  float64 `yaml:"timeout" json:"timeout"`
	MaxTries int     `yaml:"max_tries" json:"max_tries"`
	MaxWait  float64 `yaml:"max_wait" json:"max_wait"`
	// RequestsPerMinute, TokensPerMinute and MaxConcurrent bound the requests of
	// all workers together; 0 means what the provider says, or lets through.
	RequestsPerMinute int64       `yaml:"requests_per_minute" json:"requests_per_minute,omitempty"`
	TokensPerMinute   int64       `yaml:"tokens_per_minute" json:"tokens_per_minute,omitempty"`
	MaxConcurrent     int         `yaml:"max_concurrent" json:"max_concurrent,omitempty"`
	Price             model.Price `yaml:"price" json:"price"`
	// PriceAs names the model of the table whose price is meant, for one behind a
	// proxy; PriceFile is a table of one's own, in the form of mini's.
	PriceAs   string `yaml:"price_as" json:"price_as,omitempty"`
	PriceFile string `yaml:"price_file" json:"price_file,omitempty"`
	// Images says whether the model takes images: "yes", "no", or "auto" (the
	// default), which looks for it in the table of models.
	Images string `yaml:"images" json:"images,omitempty"`
	// Window is how many tokens a prompt and the reply to it may have together;
	// 0 means what the table of models says, and no bound where it says nothing.
	// An attempt ends when a prompt would come closer to that than Reserve, which
	// is for the reply; 0 means its max_tokens, or 4096, or a part of a small window.
	Window  int64 `yaml:"context_window" json:"context_window,omitempty"`
	Reserve int64 `yaml:"context_reserve" json:"context_reserve,omitempty"`
	// Route lets several models answer. What is set beside it holds for all of
	// them, as far as they do not say otherwise.
	Route Route `yaml:"route" json:"route,omitzero"`
	// Summary are the settings of the model that makes summaries (agent.compaction),
	// as far as they differ from those beside it; empty leaves them to the model
	// that answers.
	Summary Override `yaml:"summary" json:"summary,omitempty"`
	// Replies is the file of the scripted model.
	Replies string `yaml:"replies" json:"replies,omitempty"`
	// Delay is how long the scripted model takes for a reply, in seconds.
	Delay float64 `yaml:"delay" json:"delay,omitempty"`
}

// Environment says where commands run.
type Environment struct {
	// Class is "docker", "local" or "bubblewrap".
	Class string `yaml:"environment_class" json:"environment_class"`
	// Image overrides the instance's own.
	Image string `yaml:"image" json:"image,omitempty"`
	Dir   string `yaml:"cwd" json:"cwd"`
	// Env is set for every command; ForwardEnv names variables of the host
	// that are passed on. Nothing else of the host's environment is.
	Env        map[string]string `yaml:"env" json:"env,omitempty"`
	ForwardEnv []string          `yaml:"forward_env" json:"forward_env,omitempty"`
	// Timeout bounds one command, in seconds.
	Timeout float64 `yaml:"timeout" json:"timeout"`
	// Interpreter is the shell and its flags. A container whose image lacks it
	// is not started; [sh, -c] is for images without bash.
	Interpreter []string `yaml:"interpreter" json:"interpreter,omitempty"`

	// CleanEnv starts commands of the local environment with none of the host's
	// variables but PATH, HOME, LANG and the like; Env and ForwardEnv are added.
	CleanEnv bool `yaml:"clean_env" json:"clean_env,omitempty"`

	// The rest is for containers.

	// PullTimeout is how long a pull may stand still, in seconds.
	PullTimeout float64 `yaml:"pull_timeout" json:"pull_timeout"`
	// Network is "none", "bridge", "host", a network's name, or
	// "container:NAME" for that container's. With none the model is told so.
	Network string `yaml:"network" json:"network,omitempty"`
	// Memory and ShmSize are sizes, as "4g" or "512m". What lies in /dev/shm
	// counts as memory; where its size is not set it is 64m, or a quarter of a
	// small memory.
	Memory    string  `yaml:"memory" json:"memory,omitempty"`
	ShmSize   string  `yaml:"shm_size" json:"shm_size,omitempty"`
	CPUs      float64 `yaml:"cpus" json:"cpus,omitempty"` // 1.5 is one and a half; 0 means no bound
	PidsLimit int64   `yaml:"pids_limit" json:"pids_limit,omitempty"`
	// Tmpfs maps directories to the size of a file system in memory for each,
	// as /scratch: 64m; what lies in them counts as memory.
	Tmpfs map[string]string `yaml:"tmpfs" json:"tmpfs,omitempty"`
	// ReadOnly makes the image's own file system read-only. /tmp gets a file
	// system in memory, unless Tmpfs or Mounts have it.
	ReadOnly bool `yaml:"read_only" json:"read_only,omitempty"`
	// Ulimits maps names of limits to "soft" or "soft:hard", as nofile: "1024:4096".
	Ulimits map[string]string `yaml:"ulimits" json:"ulimits,omitempty"`
	// Mounts are folders of the host, as HOST:CONTAINER, read-only unless
	// ":rw" follows.
	Mounts []string `yaml:"mounts" json:"mounts,omitempty"`
	// Runtime is the engine's name of another runtime, as "runsc".
	Runtime  string `yaml:"runtime" json:"runtime,omitempty"`
	User     string `yaml:"user" json:"user,omitempty"`
	Platform string `yaml:"platform" json:"platform,omitempty"`
	// CapAdd and CapDrop replace mini's own lists.
	CapAdd  []string `yaml:"cap_add" json:"cap_add,omitempty"`
	CapDrop []string `yaml:"cap_drop" json:"cap_drop,omitempty"`
	// NewPrivileges lets set-uid programs gain rights.
	NewPrivileges bool `yaml:"new_privileges" json:"new_privileges,omitempty"`
	// HelperDir is a folder with sandbox helpers of one's own build, instead
	// of those inside mini.
	HelperDir string `yaml:"helper_dir" json:"helper_dir,omitempty"`
	// Unsafe accepts capabilities that let a command forge its own results, and
	// mounts that hand it the engine's machine.
	Unsafe bool `yaml:"unsafe" json:"unsafe,omitempty"`
}

// Run says how a batch is worked.
type Run struct {
	// StartupCommand runs in each sandbox before the agent starts; a template
	// over the instance's fields.
	StartupCommand string `yaml:"env_startup_command" json:"env_startup_command,omitempty"`
	Workers        int    `yaml:"workers" json:"workers"`
	// MaxStarts bounds containers being started at once; 0 means twice the cores.
	MaxStarts int `yaml:"max_starts" json:"max_starts"`
	// Attempts is how many results each instance is to have, for pass@k. They
	// stand side by side; the first is the one in preds.json.
	Attempts int `yaml:"attempts" json:"attempts,omitempty"`
	// MaxTries bounds how often one run tries an instance whose sandbox or
	// provider fails.
	MaxTries int `yaml:"max_tries" json:"max_tries"`
	// TotalCostLimit bounds the US dollars, TotalCalls the calls of the model, of
	// all attempts in a run's folder together; 0 means no bound. What runs then
	// ends as interrupted, and is made again with a larger bound.
	TotalCostLimit float64 `yaml:"total_cost_limit" json:"total_cost_limit,omitempty"`
	TotalCalls     int     `yaml:"total_calls" json:"total_calls,omitempty"`
	// MaxProviderFailures stops a batch when so many instances in a row fail at
	// the model's provider; 0 never does.
	MaxProviderFailures int `yaml:"max_consecutive_provider_failures" json:"max_consecutive_provider_failures"`
	// Keep says whose sandboxes stay when they are done: "none", "failed" (what
	// did not end with a submission of the agent's own) or "all".
	Keep string `yaml:"keep" json:"keep,omitempty"`
	// ImageBudget bounds, in bytes, the images that mini pulled and keeps, as
	// "80GB"; empty means no bound.
	ImageBudget string `yaml:"image_budget" json:"image_budget,omitempty"`
	// Prefetch is how many images are pulled ahead of the workers.
	Prefetch int `yaml:"prefetch" json:"prefetch"`
	// PullsPerMinute bounds pulls of all workers together; 0 means no bound.
	PullsPerMinute float64 `yaml:"pulls_per_minute" json:"pulls_per_minute,omitempty"`
	// MinFreeDisk is how much room the engine's disk must have for another
	// sandbox to be started, as "5GB"; starts wait below it. "0" means none.
	MinFreeDisk string `yaml:"min_free_disk" json:"min_free_disk,omitempty"`
	// TrajResponse puts the provider's own responses into the .traj.json files
	// too. The journals always have them.
	TrajResponse bool `yaml:"traj_response" json:"traj_response,omitempty"`
	// ResumeAttempts goes on inside attempts that were stopped in the middle,
	// rather than make new ones.
	ResumeAttempts bool `yaml:"resume_attempts" json:"resume_attempts,omitempty"`
	// Fsync says when journals are brought to the disk: "never" by mini, at the end
	// of an "attempt", or with every "record". Only a loss of power can tell.
	Fsync trajectories.Sync `yaml:"fsync" json:"fsync,omitempty"`
	// Eval lets a batch judge each submission as soon as it is there.
	Eval bool `yaml:"eval" json:"eval,omitempty"`
}

// Replay says how commands that are run again are held against their records.
type Replay struct {
	// Ignore are regular expressions: what they find in a line of output may differ.
	Ignore []string `yaml:"ignore" json:"ignore,omitempty"`
}

// Eval says how patches are judged. The sandboxes of that are the official
// harness's, whatever Environment says.
type Eval struct {
	// Workers is how many patches are judged at once; 0 means half of the cores:
	// tests that fight for processors run into timeouts.
	Workers int `yaml:"workers" json:"workers"`
	// Timeout bounds the script of one evaluation, all of it, in seconds.
	Timeout float64 `yaml:"timeout" json:"timeout"`
	// Network is "bridge", as the official harness has it, or "none".
	Network string `yaml:"network" json:"network"`
	// RerunFailed is how often what failed is run again, to see whether it
	// always does.
	RerunFailed int `yaml:"rerun_failed" json:"rerun_failed,omitempty"`
	// Cache is a folder of verdicts that runs share; empty means that each
	// knows its own only.
	Cache string `yaml:"cache" json:"cache,omitempty"`
}
