// Package configs reads, merges and validates mini's configuration.
//
// Layers, from lowest to highest precedence: built-in default, the user's config
// file, --profile, -c FILE, -c key.sub=value, flags. A profile is chosen per run, so
// it overrides the user's file; the command line overrides the profile. An unknown
// key, a value of the wrong type or an invalid template is an error with the file, the
// line and the closest key.
//
// Secrets are not configuration: they come from environment variables.
//
//	layer, err := configs.ReadFile("mine.yaml")
//	cfg, err := configs.Merge(configs.ReadBuiltin("swebench"), layer)
package configs

import (
	"io/fs"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/agent/tools/skills"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// Config contains all settings. The YAML names are those of mini-swe-agent, if it has
// the setting.
type Config struct {
	Agent       agent.Config `yaml:"agent"`
	Model       Model        `yaml:"model"`
	Environment Environment  `yaml:"environment"`
	Run         Run          `yaml:"run"`
	Eval        Eval         `yaml:"eval"`
	Replay      Replay       `yaml:"replay"`
	// Policy decides which commands run, are denied, or need approval.
	Policy policy.Config `yaml:"policy"`
	// Tools, Skills, Memory and Agents configure mini-tool; by default all are off.
	Tools  tools.Settings   `yaml:"tools"`
	Skills skills.Config    `yaml:"skills"`
	Memory memory.Config    `yaml:"memory"`
	Agents subagents.Config `yaml:"agents"`
}

// Model selects and configures the model.
type Model struct {
	// Class is "openai" (any server with an OpenAI-compatible API), "anthropic"
	// (any server with Anthropic's API) or "scripted" (fixed replies from a file).
	Class string `yaml:"model_class" json:"model_class"`
	Name  string `yaml:"model_name" json:"model_name"`
	// BaseURL is the URL of the API; empty means OPENAI_BASE_URL or
	// ANTHROPIC_BASE_URL, by Class, or else the provider's own.
	BaseURL string `yaml:"base_url" json:"base_url,omitempty"`
	// APIKeyEnv is the environment variable with the API key; the default is
	// OPENAI_API_KEY or ANTHROPIC_API_KEY, by Class.
	APIKeyEnv string `yaml:"api_key_env" json:"api_key_env,omitempty"`
	// Kwargs are added to the body of each request.
	Kwargs map[string]any `yaml:"model_kwargs" json:"model_kwargs,omitempty"`
	Stream bool           `yaml:"stream" json:"stream,omitempty"`
	// StreamIdle limits the time between two events of a stream, in seconds.
	StreamIdle float64 `yaml:"stream_idle" json:"stream_idle,omitempty" check:"seconds"`
	// SendReasoning sends the model its earlier reasoning as reasoning_content, for
	// servers of the class openai that need it. mini also sends it to a server that has
	// rejected a request without it.
	SendReasoning bool `yaml:"send_reasoning" json:"send_reasoning,omitempty" only:"openai"`
	// Tokens records the token ids and log probabilities of each call, which vLLM (0.11 or newer) returns, for
	// training (mini export --format tokens). A server that sends none is an error.
	Tokens bool `yaml:"tokens" json:"tokens,omitempty" only:"openai"`
	// Headers are added to each request to a provider.
	Headers map[string]string `yaml:"headers" json:"headers,omitempty" only:"openai|anthropic"`
	// Cache is how long the provider keeps a conversation cached for the next step:
	// "5m" (default), "1h" or "off"; for the class anthropic.
	Cache string `yaml:"cache" json:"cache,omitempty" check:"oneof=|5m|1h|off" only:"anthropic"`
	// Timeout limits one request, in seconds. MaxTries limits the requests per call,
	// the first included, and MaxWait the seconds between them.
	Timeout  float64 `yaml:"timeout" json:"timeout" check:"seconds"`
	MaxTries int     `yaml:"max_tries" json:"max_tries" check:"min=1"`
	MaxWait  float64 `yaml:"max_wait" json:"max_wait" check:"seconds"`
	// RequestsPerMinute, TokensPerMinute and MaxConcurrent limit the requests of all
	// workers together; 0 means the limits that the provider reports.
	RequestsPerMinute int64       `yaml:"requests_per_minute" json:"requests_per_minute,omitempty" check:"min=0" hint:"0 means only the limits of the provider"`
	TokensPerMinute   int64       `yaml:"tokens_per_minute" json:"tokens_per_minute,omitempty" check:"min=0" hint:"0 means only the limits of the provider"`
	MaxConcurrent     int         `yaml:"max_concurrent" json:"max_concurrent,omitempty" check:"min=0" hint:"0 means only the limits of the provider"`
	Price             model.Price `yaml:"price" json:"price"`
	// PriceAs is the name in the price table of a model behind a proxy. PriceFile is a
	// price table in mini's format.
	PriceAs   string `yaml:"price_as" json:"price_as,omitempty"`
	PriceFile string `yaml:"price_file" json:"price_file,omitempty"`
	// CostTracking is "ignore_errors" if a cost limit may be set although the price of the
	// model is unknown; "default" or empty makes that an error.
	CostTracking string `yaml:"cost_tracking" json:"cost_tracking,omitempty" check:"oneof=|default|ignore_errors"`
	// Images is whether the model accepts images: "yes", "no", or "auto" (default),
	// which looks it up in the table of models.
	Images string `yaml:"images" json:"images,omitempty" check:"oneof=|auto|yes|no"`
	// ContextWindow is the context window, in tokens, of a prompt and its reply; 0 means the
	// value from the table of models, or no limit for an unknown model. An attempt ends
	// when a prompt leaves less than ReplyReserve tokens for the reply. A ReplyReserve of 0 means
	// max_tokens, or 4096, or less for a small window.
	ContextWindow int64 `yaml:"context_window" json:"context_window,omitempty" check:"min=0 max=1099511627776" hint:"0 means the window of a known model"`
	ReplyReserve  int64 `yaml:"context_reserve" json:"context_reserve,omitempty" check:"min=0 max=1099511627776" hint:"0 means the default"`
	// Route uses several models. The other settings of the section apply to all of
	// them, unless an entry overrides them.
	Route Route `yaml:"route" json:"route,omitzero"`
	// Summary overrides settings for the model that writes summaries
	// (agent.compaction); empty means the main model.
	Summary Override `yaml:"summary" json:"summary,omitempty"`
	// Replies is the file with the replies of the scripted model.
	Replies string `yaml:"replies" json:"replies,omitempty"`
	// Delay is how long the scripted model waits before a reply, in seconds.
	Delay float64 `yaml:"delay" json:"delay,omitempty" check:"seconds zero" only:"scripted"`
}

// IgnoreCostErrors is the value of Model.CostTracking for which an unknown price is no error.
const IgnoreCostErrors = "ignore_errors"

// Run configures a run on a dataset.
type Run struct {
	// StartupCommand runs in each sandbox before the agent starts. It is a template
	// over the fields of the instance.
	StartupCommand string `yaml:"env_startup_command" json:"env_startup_command,omitempty"`
	Workers        int    `yaml:"workers" json:"workers" check:"min=1"`
	// MaxStarts limits the containers that start at the same time; 0 means twice the
	// number of processors.
	MaxStarts int `yaml:"max_starts" json:"max_starts" check:"min=0" hint:"0 means twice the cores"`
	// Attempts is the number of results per instance, for pass@k. preds.json contains
	// the first.
	Attempts int `yaml:"attempts" json:"attempts,omitempty" check:"min=1 max=10000"`
	// MaxTries limits the attempts per instance and run if the sandbox or the provider
	// fails.
	MaxTries int `yaml:"max_tries" json:"max_tries" check:"min=1"`
	// TotalCostLimit limits the cost in US dollars, and TotalCallLimit the model calls, of
	// all attempts in a run folder; 0 means no limit. At a limit, running attempts end as
	// interrupted; they are repeated when the limit is raised.
	TotalCostLimit float64 `yaml:"total_cost_limit" json:"total_cost_limit,omitempty" check:"min=0" hint:"0 means no limit"`
	TotalCallLimit int     `yaml:"total_calls" json:"total_calls,omitempty" check:"min=0" hint:"0 means no limit"`
	// MaxProviderFailures stops the run after so many consecutive instances failed
	// because of the model's provider; 0 means never.
	MaxProviderFailures int `yaml:"max_consecutive_provider_failures" json:"max_consecutive_provider_failures" check:"min=0" hint:"0 means no limit"`
	// Keep selects the sandboxes to keep after an attempt: "none", "failed" (the agent
	// did not submit) or "all".
	Keep string `yaml:"keep" json:"keep,omitempty" check:"oneof=none|failed|all"`
	// ImageBudget limits the size of all images that mini pulled, for example "80GB";
	// empty means no limit.
	ImageBudget string `yaml:"image_budget" json:"image_budget,omitempty" check:"disksize" lacks:"local bubblewrap"`
	// Prefetch is the number of images to pull in advance.
	Prefetch int `yaml:"prefetch" json:"prefetch" check:"min=0" hint:"0 disables it"`
	// PullsPerMinute limits the pulls of all workers together; 0 means no limit.
	PullsPerMinute float64 `yaml:"pulls_per_minute" json:"pulls_per_minute,omitempty" check:"min=0 max=1000000" hint:"0 means no limit"`
	// MinFreeDisk is the free space on the engine's disk required to start a sandbox,
	// for example "5GB"; with less, starts wait. "0" means that none is required.
	MinFreeDisk string `yaml:"min_free_disk" json:"min_free_disk,omitempty" check:"disksize"`
	// TrajResponse adds the provider's raw responses to the .traj.json files. The
	// journals always contain them.
	TrajResponse bool `yaml:"traj_response" json:"traj_response,omitempty"`
	// ResumeAttempts continues interrupted attempts instead of starting new ones.
	ResumeAttempts bool `yaml:"resume_attempts" json:"resume_attempts,omitempty"`
	// Fsync is when to fsync journals: "never", at the end of an "attempt", or after
	// every "record". It matters only for a power failure.
	Fsync trajectories.SyncPolicy `yaml:"fsync" json:"fsync,omitempty" check:"oneof=never|attempt|record"`
	// Shared lets other users of this machine read a new run folder: its mode is 0755, not
	// 0700.
	Shared bool `yaml:"shared" json:"shared,omitempty"`
	// Eval evaluates each submission as soon as it is made.
	Eval bool `yaml:"eval" json:"eval,omitempty"`
	// RewardURL gets a POST with the reward of each attempt, after its verdict. It can have the placeholders of
	// model.base_url. RewardBody is the template of the body; "" means that of uni-agent's gateway.
	RewardURL  string `yaml:"reward_url" json:"reward_url,omitempty"`
	RewardBody string `yaml:"reward_body" json:"reward_body,omitempty"`
}

// FolderMode returns the mode of a new run folder.
func (r Run) FolderMode() fs.FileMode {
	if r.Shared {
		return 0o755
	}
	return 0o700
}

// Replay configures the comparison of replayed commands with their records.
type Replay struct {
	// Ignore are regular expressions; matching parts of a line may differ.
	Ignore []string `yaml:"ignore" json:"ignore,omitempty"`
}

// Eval configures the evaluation of patches. Its containers follow the official
// harness; Environment does not apply.
type Eval struct {
	// Workers is the number of concurrent evaluations; 0 means half of the processors,
	// because tests that compete for processors time out.
	Workers int `yaml:"workers" json:"workers" check:"min=0" hint:"0 means half of the cores"`
	// Timeout limits the evaluation script, in seconds.
	Timeout float64 `yaml:"timeout" json:"timeout" check:"seconds"`
	// Network is "bridge", as in the official harness, or "none".
	Network string `yaml:"network" json:"network" check:"oneof=bridge|none"`
	// RerunFailed is how often to rerun failed tests, to detect flaky ones.
	RerunFailed int `yaml:"rerun_failed" json:"rerun_failed,omitempty" check:"range=0-100"`
	// Cache is a directory of verdicts shared by runs; empty means that each run has
	// its own.
	Cache string `yaml:"cache" json:"cache,omitempty"`
}
