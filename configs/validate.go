package configs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/trajectories"
)

// Names of the classes of models and environments that model/open and env/open create.
var (
	ModelClasses       = []string{"openai", "anthropic", "scripted"}
	EnvironmentClasses = []string{"docker", "local", "bubblewrap", kubernetesClass}
)

// Valid values of settings.
var (
	cacheDurations = []string{"", "5m", "1h", "off"}       // model.cache
	costTrackings  = []string{"default", IgnoreCostErrors} // model.cost_tracking
	imageModes     = []string{"auto", "yes", "no"}         // model.images
	agentModes     = []string{"confirm", "yolo", "human"}  // agent.mode
	keepModes      = []string{"none", "failed", "all"}     // run.keep
	evalNetworks   = []string{"bridge", "none"}            // eval.network
	// fsyncModes are the values of run.fsync.
	fsyncModes = []string{
		string(trajectories.SyncNever), string(trajectories.SyncAttempt), string(trajectories.SyncRecord),
	}
)

// maxAttempts limits run.attempts, like runs.MaxRepetitions.
const maxAttempts = 10_000

// validate returns an error for values that have the right type but are invalid. It also
// copies the settings of other sections that the section agent needs.
func (r *Resolved) validate() error {
	errs := slices.Concat(
		r.validateModel(), r.validateRoute(), r.validateSummary(), r.validateEnvironment(),
		r.optionalOneOf("agent.mode", r.Agent.Mode, agentModes), r.finishEngines(), r.validateTools(), r.validateAgents(),
	)
	for _, f := range []struct {
		key   string
		value int
	}{
		{"run.workers", r.Run.Workers}, {"run.attempts", r.Run.Attempts}, {"run.max_tries", r.Run.MaxTries}, {"model.max_tries", r.Model.MaxTries},
	} {
		if f.value < 1 {
			errs = append(errs, r.errorf(f.key, "%v is less than 1", f.value))
		}
	}
	if r.Run.Attempts > maxAttempts {
		errs = append(errs, r.errorf("run.attempts", "%d is more than %d", r.Run.Attempts, maxAttempts))
	}
	errs = slices.Concat(errs,
		notNegative(r, "run.max_starts", r.Run.MaxStarts, "0 means twice the cores"),
		notNegative(r, "run.total_cost_limit", r.Run.TotalCostLimit, "0 means no limit"),
		notNegative(r, "run.total_calls", r.Run.TotalCallLimit, "0 means no limit"),
		notNegative(r, "run.max_consecutive_provider_failures", r.Run.MaxProviderFailures, "0 means no limit"),
	)
	if n := r.Agent.WallTimeLimit; n > maxSeconds {
		errs = append(errs, r.errorf("agent.wall_time_limit_seconds", "%v is more than ten years; 0 means no limit", n))
	}
	errs = slices.Concat(
		errs, r.oneOf("run.fsync", string(r.Run.Fsync), fsyncModes, ""), r.validateImages(), r.validateEval(),
		r.validateReplay(), r.validatePolicy(), r.optionalOneOf("memory.notes", r.Memory.Notes, memory.NotesModes), r.validateSkills(),
	)
	r.Agent.Class = agentClass(r.Agent.Class)
	r.Agent.StartupCommand = r.Run.StartupCommand
	r.Agent.Timeout = seconds(r.Environment.Timeout)
	return join(errs)
}

// notNegative returns an error with a hint if n is negative.
func notNegative[N int | int64 | float64](r *Resolved, key string, n N, hint string) []error {
	if n >= 0 {
		return nil
	}
	return []error{r.errorf(key, "%v is negative; %s", n, hint)}
}

// variableName matches the names of environment variables.
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether name is a valid name of an environment variable.
func IsVariable(name string) bool { return variableName.MatchString(name) }

func (r *Resolved) validateModel() []error {
	m := r.Model
	errs := r.oneOf("model.model_class", m.Class, ModelClasses, migratedClass(m.Class, true))
	if m.APIKeyEnv != "" && !IsVariable(m.APIKeyEnv) { // the value may be the key itself: do not repeat it
		errs = append(errs, r.errorf("model.api_key_env",
			"not a valid name; it names the environment variable with the key, for example OPENAI_API_KEY"))
	}
	if key := secretIn(m.Kwargs, "model.model_kwargs"); key != "" {
		errs = append(errs, r.errorf(key,
			"do not put keys in the configuration, which is written to files; set an environment variable and name it in model.api_key_env"))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Kwargs)) {
		hasTools := name == "parallel_tool_calls" && r.Agent.Protocol == protocol.Tools
		if hint, ok := migratedKwargs[name]; ok && !hasTools {
			errs = append(errs, r.errorf("model.model_kwargs."+name, "%s", hint))
		}
	}
	errs = append(errs, slices.Concat(r.validateProvider(), r.validateWindow())...)
	switch u, err := url.Parse(m.BaseURL); {
	case strings.Contains(m.BaseURL, "$"):
		errs = append(errs, r.errorf("model.base_url", "variables are not expanded here; write the address, or set OPENAI_BASE_URL or ANTHROPIC_BASE_URL in your shell"))
	case err != nil || u.User != nil || u.RawQuery != "":
		errs = append(errs, r.errorf("model.base_url", "not a plain URL; it is written to files, so remove user name, password and query"))
	case m.BaseURL != "" && !strings.HasPrefix(m.BaseURL, "http://") && !strings.HasPrefix(m.BaseURL, "https://"):
		errs = append(errs, r.errorf("model.base_url", "it must start with http:// or https://"))
	}
	const unit = "it is in dollars per million tokens"
	errs = slices.Concat(errs,
		notNegative(r, "model.price.input", m.Price.Input, unit), notNegative(r, "model.price.cached", m.Price.Cached, unit),
		notNegative(r, "model.price.output", m.Price.Output, unit), r.optionalOneOf("model.images", m.Images, imageModes),
		r.optionalOneOf("model.cost_tracking", m.CostTracking, costTrackings))
	if m.Delay > 0 && m.Class != "scripted" {
		errs = append(errs, r.errorf("model.delay", "only the scripted model has a delay; leave it out"))
	}
	if m.Delay < 0 || m.Delay > maxSeconds {
		errs = append(errs, r.errorf("model.delay", "%v is not a positive number of seconds", m.Delay))
	}
	const zero = "0 means only the limits of the provider"
	return slices.Concat(errs, notNegative(r, "model.requests_per_minute", m.RequestsPerMinute, zero),
		notNegative(r, "model.tokens_per_minute", m.TokensPerMinute, zero), notNegative(r, "model.max_concurrent", m.MaxConcurrent, zero),
		r.positiveSeconds("model.timeout", m.Timeout), r.positiveSeconds("model.stream_idle", m.StreamIdle),
		r.positiveSeconds("model.max_wait", m.MaxWait))
}

// validateProvider reports settings that do not apply to the class of the model, and
// headers with keys.
func (r *Resolved) validateProvider() []error {
	m := r.Model
	var errs []error
	switch {
	case m.Class == "anthropic" && !slices.Contains(cacheDurations, m.Cache):
		errs = append(errs, r.errorf("model.cache", "%.20q is not one of %s", m.Cache, strings.Join(cacheDurations[1:], ", ")))
	case m.Class != "anthropic" && m.Cache != "":
		errs = append(errs, r.errorf("model.cache", "only model_class: anthropic has it; leave it out"))
	}
	if m.SendReasoning && m.Class != "openai" {
		errs = append(errs, r.errorf("model.send_reasoning", "only model_class: openai has it; leave it out"))
	}
	if len(m.Headers) > 0 && m.Class == "scripted" {
		errs = append(errs, r.errorf("model.headers", "the scripted model sends no requests; leave them out"))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if LooksSecret(name) {
			errs = append(errs, r.errorf("model.headers."+name,
				"do not put keys in the configuration, which is written to files; set an environment variable and name it in model.api_key_env"))
		}
	}
	return errs
}

// oneOf returns an error with a hint if a value is not among the known ones. If hint is
// empty, the hint is the closest known value.
func (r *Resolved) oneOf(key, name string, known []string, hint string) []error {
	if slices.Contains(known, name) {
		return nil
	}
	text := fmt.Sprintf("%.60q is not one of %s", name, strings.Join(known, ", "))
	if hint == "" {
		if best := ClosestName(name, known); best != "" {
			hint = fmt.Sprintf("did you mean %s?", best)
		}
	}
	if hint != "" {
		text += "; " + hint
	}
	return []error{r.errorf(key, "%s", text)}
}

// optionalOneOf is oneOf for a setting that may be empty.
func (r *Resolved) optionalOneOf(key, name string, known []string) []error {
	if name == "" {
		return nil
	}
	return r.oneOf(key, name, known, "")
}

// secretIn returns the dotted key of a secret in nested settings; "" if there is none.
func secretIn(v any, path string) string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			full := path + "." + key
			if LooksSecret(key) {
				return full
			}
			if found := secretIn(value, full); found != "" {
				return found
			}
		}
	case []any:
		for _, value := range v {
			if found := secretIn(value, path); found != "" {
				return found
			}
		}
	}
	return ""
}

// validateImages validates the settings about images and kept sandboxes.
func (r *Resolved) validateImages() []error {
	errs := append(r.oneOf("run.keep", r.Run.Keep, keepModes, ""), notNegative(r, "run.prefetch", r.Run.Prefetch, "0 disables it")...)
	if n := r.Run.PullsPerMinute; !(n >= 0) || n > 1e6 {
		errs = append(errs, r.errorf("run.pulls_per_minute", "%v is not a number of pulls; 0 means no limit", n))
	}
	for _, f := range []struct{ key, size string }{{"run.image_budget", r.Run.ImageBudget}, {"run.min_free_disk", r.Run.MinFreeDisk}} {
		if _, err := ParseDiskSize(f.size); err != nil {
			errs = append(errs, r.errorf(f.key, `%q is not a size; write "80GB"`, f.size))
		}
	}
	return errs
}

// maxReruns limits eval.rerun_failed.
const maxReruns = 100

func (r *Resolved) validateReplay() (errs []error) {
	for _, text := range r.Replay.Ignore {
		re, err := regexp.Compile(text)
		if err == nil && re.MatchString("") {
			err = errors.New("it matches the empty string, and so every line")
		}
		if err != nil {
			errs = append(errs, r.errorf("replay.ignore", "%q is not a valid pattern: %v", text, err))
		}
	}
	return errs
}

func (r *Resolved) validateEval() []error {
	e := r.Eval
	errs := slices.Concat(
		r.oneOf("eval.network", e.Network, evalNetworks, ""), r.positiveSeconds("eval.timeout", e.Timeout),
		notNegative(r, "eval.workers", e.Workers, "0 means half of the cores"))
	if e.RerunFailed < 0 || e.RerunFailed > maxReruns {
		errs = append(errs, r.errorf("eval.rerun_failed", "%d is not a number from 0 to %d", e.RerunFailed, maxReruns))
	}
	return errs
}

// ParseDiskSize parses a size in decimal units, as for disks: "80GB" is 80,000,000,000 bytes.
// Empty and "0" are 0.
func ParseDiskSize(s string) (int64, error) {
	if s == "" || s == "0" {
		return 0, nil
	}
	n, err := units.FromHumanSize(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// ParseSize parses a number of bytes in binary units: "512m", "4g". Empty is 0.
func ParseSize(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := units.RAMInBytes(s)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return n, err
}

// positiveSeconds returns an error unless n is a positive number, at most maxSeconds.
func (r *Resolved) positiveSeconds(key string, n float64) []error {
	if !(n > 0) || n > maxSeconds {
		return []error{r.errorf(key, "%v is not a number of seconds between 0 and %d", n, int(maxSeconds))}
	}
	return nil
}

// maxSeconds is ten years, far below the longest time.Duration.
const maxSeconds = 10 * 365 * 24 * 3600

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
