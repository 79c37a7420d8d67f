package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"github.com/minibench/mini/agent/protocol"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Names of the classes of models and environments that model/open and env/open create.
var (
	ModelClasses       = []string{"openai", "anthropic", "scripted"}
	EnvironmentClasses = []string{"docker", "local", "bubblewrap", kubernetesClass}
)

// validate returns an error for values that have the right type but are invalid. It also
// copies the settings of other sections that the section agent needs.
func (r *Resolved) validate() error {
	errs := slices.Concat(
		r.validateModel(), r.validateRoute(), r.validateSummary(), r.validateEnvironment(), r.finishEngines(), r.validateTools(),
		r.checkValues(reflect.ValueOf(r.Config), ""), r.validateReplay(), r.validatePolicy(), r.validateSkills(),
	)
	r.Agent.Class = agentClass(r.Agent.Class)
	r.Agent.StartupCommand = r.Run.StartupCommand
	r.Agent.Timeout = seconds(r.Environment.Timeout)
	return join(errs)
}

// variableName matches the names of environment variables.
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether name is a valid name of an environment variable.
func IsVariable(name string) bool { return variableName.MatchString(name) }

const noKeys = "do not put keys in the configuration, which is written to files; set an environment variable and name it in model.api_key_env"

func (r *Resolved) validateModel() []error {
	m := r.Model
	oldClass, _ := findOldClass(modelClassKey, m.Class)
	errs := r.oneOf(modelClassKey, m.Class, ModelClasses, oldClass.Why)
	if m.APIKeyEnv != "" && !IsVariable(m.APIKeyEnv) { // the value may be the key itself: do not repeat it
		errs = append(errs, r.errorf("model.api_key_env",
			"not a valid name; it names the environment variable with the key, for example OPENAI_API_KEY"))
	}
	if key := secretIn(m.Kwargs, "model.model_kwargs"); key != "" {
		errs = append(errs, r.errorf(key, noKeys))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Kwargs)) {
		hasTools := name == "parallel_tool_calls" && r.Agent.Protocol == protocol.Tools
		if n, ok := FindOldName(kwargsKey + "." + name); ok && !hasTools && n.New != kwargsKey {
			errs = append(errs, r.errorf(n.Old, "%s", cmp.Or(n.Why, "servers reject it; leave it out")))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		if LooksSecret(name) {
			errs = append(errs, r.errorf("model.headers."+name, noKeys))
		}
	}
	switch u, err := url.Parse(m.BaseURL); {
	case strings.Contains(m.BaseURL, "$"):
		errs = append(errs, r.errorf("model.base_url", "variables are not expanded here; write the address, or set OPENAI_BASE_URL or ANTHROPIC_BASE_URL in your shell"))
	case err != nil || u.User != nil || u.RawQuery != "":
		errs = append(errs, r.errorf("model.base_url", "not a plain URL; it is written to files, so remove user name, password and query"))
	case m.BaseURL != "" && !strings.HasPrefix(m.BaseURL, "http://") && !strings.HasPrefix(m.BaseURL, "https://"):
		errs = append(errs, r.errorf("model.base_url", "it must start with http:// or https://"))
	}
	if m.ContextWindow > 0 && m.ReplyReserve >= m.ContextWindow {
		errs = append(errs, r.errorf("model.context_reserve", "%d leaves no room for the prompt in the window of %d tokens", m.ReplyReserve, m.ContextWindow))
	}
	return append(errs, r.checkValues(reflect.ValueOf(m), "model.")...)
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

// maxSeconds is ten years, far below the longest time.Duration.
const maxSeconds = 10 * 365 * 24 * 3600

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
