// Package configs holds mini's configuration: the shipped defaults, and the
// layers on top of them, merged, checked and explained.
//
// Layers, later wins: shipped default < the user's config file < -c FILE <
// -c key.sub=value < flags. A key nobody knows, a wrong type or a template
// that does not render is an error that names file, line and the nearest key.
// Secrets are not configuration: they come from the environment.
//
//	layer, err := configs.ReadFile("mine.yaml")
//	cfg, err := configs.Merge(configs.Shipped("swebench"), layer)
package configs

import (
	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/model"
)

// Config is everything that can be configured. The yaml names are those
// mini-swe-agent's users know, where it has them.
type Config struct {
	Agent       agent.Config `yaml:"agent"`
	Model       Model        `yaml:"model"`
	Environment Environment  `yaml:"environment"`
	Run         Run          `yaml:"run"`
}

// Model says which model answers.
type Model struct {
	// Class is "openai" (any server with an OpenAI-compatible API) or
	// "scripted" (fixed replies from a file).
	Class string `yaml:"model_class" json:"model_class"`
	Name  string `yaml:"model_name" json:"model_name"`
	// BaseURL of the API; empty means OPENAI_BASE_URL, else the provider's own.
	BaseURL string `yaml:"base_url" json:"base_url,omitempty"`
	// APIKeyEnv names the environment variable that holds the key.
	APIKeyEnv string `yaml:"api_key_env" json:"api_key_env,omitempty"`
	// Kwargs are passed in the request's body as they are.
	Kwargs map[string]any `yaml:"model_kwargs" json:"model_kwargs,omitempty"`
	Stream bool           `yaml:"stream" json:"stream,omitempty"`
	// Timeout bounds one request, in seconds. MaxTries bounds requests per
	// call, the first included.
	Timeout  float64     `yaml:"timeout" json:"timeout"`
	MaxTries int         `yaml:"max_tries" json:"max_tries"`
	Price    model.Price `yaml:"price" json:"price"`
	// Replies is the file of the scripted model.
	Replies string `yaml:"replies" json:"replies,omitempty"`
}

// Environment says where commands run.
type Environment struct {
	// Class is "docker" or "local".
	Class string `yaml:"environment_class" json:"environment_class"`
	// Image overrides the instance's own.
	Image string `yaml:"image" json:"image,omitempty"`
	Dir   string `yaml:"cwd" json:"cwd"`
	// Env is set for every command; ForwardEnv names variables of the host
	// that are passed on.
	Env        map[string]string `yaml:"env" json:"env,omitempty"`
	ForwardEnv []string          `yaml:"forward_env" json:"forward_env,omitempty"`
	// Timeout bounds one command, in seconds.
	Timeout     float64  `yaml:"timeout" json:"timeout"`
	Interpreter []string `yaml:"interpreter" json:"interpreter,omitempty"`

	// The rest is for containers.

	// PullTimeout is how long a pull may stand still, in seconds.
	PullTimeout float64 `yaml:"pull_timeout" json:"pull_timeout"`
	Network     string  `yaml:"network" json:"network,omitempty"` // "none", "bridge" or a network's name
	Memory      string  `yaml:"memory" json:"memory,omitempty"`   // "4g", "512m"
	ShmSize     string  `yaml:"shm_size" json:"shm_size,omitempty"`
	CPUs        float64 `yaml:"cpus" json:"cpus,omitempty"`
	PidsLimit   int64   `yaml:"pids_limit" json:"pids_limit,omitempty"`
	User        string  `yaml:"user" json:"user,omitempty"`
	Platform    string  `yaml:"platform" json:"platform,omitempty"`
	// CapAdd and CapDrop replace mini's own lists.
	CapAdd  []string `yaml:"cap_add" json:"cap_add,omitempty"`
	CapDrop []string `yaml:"cap_drop" json:"cap_drop,omitempty"`
	// NewPrivileges lets set-uid programs gain rights.
	NewPrivileges bool `yaml:"new_privileges" json:"new_privileges,omitempty"`
	// HelperDir is a folder with sandbox helpers of one's own build, instead
	// of those inside mini.
	HelperDir string `yaml:"helper_dir" json:"helper_dir,omitempty"`
	// Unsafe accepts capabilities that let a command forge its own results.
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
	// MaxTries bounds how often one run tries an instance whose sandbox or
	// provider fails.
	MaxTries int `yaml:"max_tries" json:"max_tries"`
}
