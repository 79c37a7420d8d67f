package harbor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
)

// Config is the content of task.toml, of every schema version from 1.0 to 1.4. It has every
// key of Harbor 0.22. Those that are read without an effect only describe the task, or limit
// what no engine limits. Keys that Harbor 0.22 does not know are in Task.UnknownKeys.
type Config struct {
	SchemaVersion string     `toml:"schema_version"`
	OldVersion    string     `toml:"version"` // the name of schema_version before 1.1
	Artifacts     []Artifact `toml:"artifacts"`
	// Strategy is how the rewards of steps are combined: "mean", the default, or "final".
	Strategy string `toml:"multi_step_reward_strategy"`
	Source   string `toml:"source"`
	Info     struct {
		Name        string   `toml:"name"`
		Version     string   `toml:"version"`
		Description string   `toml:"description"`
		Keywords    []string `toml:"keywords"`
		Authors     []struct {
			Name  string `toml:"name"`
			Email string `toml:"email"`
		} `toml:"authors"`
	} `toml:"task"`
	Metadata map[string]any `toml:"metadata"`
	Agent    Phase          `toml:"agent"`
	Verifier Verifier       `toml:"verifier"`
	Solution struct {
		Env map[string]string `toml:"env"`
	} `toml:"solution"`
	Environment Environment  `toml:"environment"`
	Steps       []StepConfig `toml:"steps"`
}

// Phase is the time limit, the user and the network of the agent or the verifier.
type Phase struct {
	Timeout      *float64 `toml:"timeout_sec"`
	User         User     `toml:"user"`
	NetworkMode  string   `toml:"network_mode"`
	AllowedHosts []string `toml:"allowed_hosts"`
}

// Verifier configures the verification. The default of its time limit is 600 seconds.
type Verifier struct {
	Phase
	Env map[string]string `toml:"env"`
	// Mode is "shared", in the agent's container, or "separate", in a fresh one; empty
	// means separate if Environment is set.
	Mode        string       `toml:"environment_mode"`
	Environment *Environment `toml:"environment"`
	Collect     []Collect    `toml:"collect"`
}

const modeShared, modeSeparate = "shared", "separate"

// Collect is a command that runs after the agent, before artifacts are copied.
type Collect struct {
	Command string   `toml:"command"`
	Service string   `toml:"service"`
	Timeout *float64 `toml:"timeout_sec"`
	User    User     `toml:"user"` // empty means the user of the image
}

// Environment configures a container. Nil numbers mean that the task does not say.
type Environment struct {
	BuildTimeout float64           `toml:"build_timeout_sec"`
	DockerImage  string            `toml:"docker_image"`
	OS           string            `toml:"os"`
	CPUs         *float64          `toml:"cpus"`
	MemoryMB     *int64            `toml:"memory_mb"`
	OldMemory    string            `toml:"memory"` // "2G", the form before memory_mb
	StorageMB    *int64            `toml:"storage_mb"`
	OldStorage   string            `toml:"storage"` // the form before storage_mb
	GPUs         int               `toml:"gpus"`
	GPUTypes     []string          `toml:"gpu_types"`
	TPU          map[string]any    `toml:"tpu"`
	NetworkMode  string            `toml:"network_mode"`
	AllowedHosts []string          `toml:"allowed_hosts"`
	Internet     *bool             `toml:"allow_internet"` // the form before network_mode
	Workdir      string            `toml:"workdir"`
	Env          map[string]string `toml:"env"`
	MCPServers   []map[string]any  `toml:"mcp_servers"`
	SkillsDir    string            `toml:"skills_dir"`
	Healthcheck  *Healthcheck      `toml:"healthcheck"`
}

// Healthcheck is a command that must succeed before the agent starts. Times are seconds.
type Healthcheck struct {
	Command       string   `toml:"command"`
	Interval      *float64 `toml:"interval_sec"`
	Timeout       *float64 `toml:"timeout_sec"`
	StartPeriod   float64  `toml:"start_period_sec"`
	StartInterval *float64 `toml:"start_interval_sec"`
	Retries       *int     `toml:"retries"`
}

// StepConfig configures a step. Agent and Verifier override those of the task.
type StepConfig struct {
	Name        string       `toml:"name"`
	Agent       Phase        `toml:"agent"`
	Verifier    Verifier     `toml:"verifier"`
	MinReward   MinReward    `toml:"min_reward"`
	Healthcheck *Healthcheck `toml:"healthcheck"`
	Artifacts   []Artifact   `toml:"artifacts"`
}

// inherit fills in what the step does not say from the task. As in Harbor, the time limit of
// the verifier has its default in each step, and the commands of verifier.collect run for
// each.
func (s StepConfig) inherit(c Config) StepConfig {
	s.Agent = s.Agent.inherit(c.Agent)
	timeout := s.Verifier.Timeout
	s.Verifier.Phase = s.Verifier.inherit(c.Verifier.Phase)
	s.Verifier.Timeout = timeout
	env := map[string]string{}
	for _, m := range []map[string]string{c.Verifier.Env, s.Verifier.Env} {
		for name, value := range m {
			env[name] = value
		}
	}
	s.Verifier.Env = env
	if s.Verifier.Mode == "" && s.Verifier.Environment == nil {
		s.Verifier.Mode = c.Verifier.Mode
	}
	if s.Verifier.Environment == nil && s.Verifier.Mode != modeShared {
		s.Verifier.Environment = c.Verifier.Environment
	}
	s.Verifier.Collect = slices.Concat(c.Verifier.Collect, s.Verifier.Collect)
	return s
}

func (p Phase) inherit(from Phase) Phase {
	if p.Timeout == nil {
		p.Timeout = from.Timeout
	}
	if p.User == "" {
		p.User = from.User
	}
	if p.NetworkMode == "" && p.AllowedHosts == nil {
		p.NetworkMode, p.AllowedHosts = from.NetworkMode, from.AllowedHosts
	}
	return p
}

// User is a name or a number.
type User string

// UnmarshalTOML implements toml.Unmarshaler.
func (u *User) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		*u = User(v)
	case int64:
		*u = User(strconv.FormatInt(v, 10))
	default:
		return fmt.Errorf("a user is a name or a number, not %v", v)
	}
	return nil
}

// Artifact is a path of the container that is copied out after the run.
type Artifact struct {
	Source, Destination, Service string
	Exclude                      []string
}

// UnmarshalTOML implements toml.Unmarshaler.
func (a *Artifact) UnmarshalTOML(v any) error {
	switch v := v.(type) {
	case string:
		a.Source = v
	case map[string]any:
		a.Source, _ = v["source"].(string)
		a.Destination, _ = v["destination"].(string)
		a.Service, _ = v["service"].(string)
		list, _ := v["exclude"].([]any)
		for _, e := range list {
			if s, ok := e.(string); ok {
				a.Exclude = append(a.Exclude, s)
			}
		}
	}
	if !strings.HasPrefix(a.Source, "/") {
		return fmt.Errorf("an artifact is an absolute path, not %.80q", a.Source)
	}
	return nil
}

// MinReward holds the least rewards with which a task goes on after a step; the name
// "reward" stands for a plain number.
type MinReward map[string]float64

// UnmarshalTOML implements toml.Unmarshaler.
func (m *MinReward) UnmarshalTOML(v any) error {
	values, ok := v.(map[string]any)
	if !ok {
		values = map[string]any{"reward": v}
	}
	*m = MinReward{}
	for name, value := range values {
		switch n := value.(type) {
		case int64:
			(*m)[name] = float64(n)
		case float64:
			(*m)[name] = n
		default:
			return fmt.Errorf("min_reward: %v is not a number", value)
		}
	}
	return nil
}

// IsReached reports whether rewards are enough. A missing reward is less than any number.
func (m MinReward) IsReached(rewards map[string]float64) bool {
	for name, least := range m {
		if got, ok := rewards[name]; !ok || got < least {
			return false
		}
	}
	return true
}

// Memory returns the memory limit in bytes, or 0 if the task does not say.
func (e Environment) Memory() int64 {
	if e.MemoryMB != nil {
		return *e.MemoryMB << 20
	}
	n, _ := parseSize(e.OldMemory)
	return n
}

// parseSize parses an old size, such as "2G" or "512M".
func parseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := units.RAMInBytes(s)
	if err != nil || n <= 0 || n > 1<<50 {
		return 0, fmt.Errorf("%.20q is not a size, such as 2G", s)
	}
	return n, nil
}

// Version returns the schema version.
func (c Config) Version() string { return cmp.Or(c.SchemaVersion, c.OldVersion, "1.4") }

// isKnownVersion reports whether mini reads a version of the schema.
func isKnownVersion(v string) bool { return v == "1" || strings.HasPrefix(v, "1.") }

// isNetworkMode reports whether a network mode is one of Harbor's.
func isNetworkMode(mode string) bool {
	return slices.Contains([]string{"", networkPublic, networkNone, networkAllowlist}, mode)
}

const networkPublic, networkNone, networkAllowlist = "public", "no-network", "allowlist"
