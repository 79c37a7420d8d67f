package settings

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// compatVariable describes how mini treats an environment variable of mini-swe-agent. A variable
// with the zero compatVariable is ignored silently, or handled by its name (MSWEA_MINI_CONFIG_PATH
// and MSWEA_CONFIG_DIR).
type compatVariable struct {
	Key     string // the setting that the variable sets
	note    string // printed with a note that the variable has no effect
	Refusal string // why a single task rejects the variable, unless its value is 0 (no limit)
}

// CompatVariables are the variables of mini-swe-agent that mini knows.
var CompatVariables = map[string]compatVariable{
	"MSWEA_MODEL_NAME":                     {Key: "model.model_name"},
	"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": {Key: "model.max_tries"},
	"MSWEA_MINI_CONFIG_PATH":               {},
	"MSWEA_CONFIG_DIR":                     {},
	"MSWEA_COST_TRACKING":                  {}, // an unknown price is never an error in mini
	"MSWEA_CONFIGURED":                     {},
	"MSWEA_SILENT_STARTUP":                 {},
	"MSWEA_GLOBAL_CONFIG_DIR":              {},
	"MSWEA_INSPECTOR_STYLE_PATH":           {},
	"MSWEA_DEFAULT_RUN":                    {note: "mini has no other entry points"},
	"MSWEA_SINGULARITY_EXECUTABLE":         {note: "mini has no Singularity or Apptainer yet"},
	"MSWEA_BUBBLEWRAP_EXECUTABLE":          {note: "mini takes bwrap from the PATH"},
	"MSWEA_DOCKER_EXECUTABLE":              {note: "mini talks to the engine itself; set DOCKER_HOST, also for podman"},
	"LITELLM_MODEL_REGISTRY_PATH":          {note: "set the prices as model.price, to have costs counted"},
	"MSWEA_GLOBAL_COST_LIMIT": {
		Key: "run.total_cost_limit", Refusal: "it bounds batches; a task is bounded by -l DOLLARS",
	},
	"MSWEA_GLOBAL_CALL_LIMIT": {
		Key: "run.total_calls", Refusal: "it bounds batches; a task is bounded by -c agent.step_limit=N",
	},
}

// CompatEnviron returns the sorted names and the values of the variables of mini-swe-agent in
// environ: those that mini knows, and all whose names begin with MSWEA_. It omits empty variables.
func CompatEnviron(environ []string) (names []string, values map[string]string) {
	values = map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		_, known := CompatVariables[name]
		if value != "" && (known || strings.HasPrefix(name, "MSWEA_")) {
			values[name] = value
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, values
}

// CompatLayers returns the settings from variables of mini-swe-agent, one layer for each variable
// that has settings. base is the name of the command's built-in configuration.
func CompatLayers(environ []string, base string) ([]configs.Layer, error) {
	var layers []configs.Layer
	names, values := CompatEnviron(environ)
	for _, name := range names {
		value, key := values[name], CompatVariables[name].Key
		switch {
		case name == "MSWEA_MINI_CONFIG_PATH" && base == "mini":
			l, err := configs.ReadArg(value, ConfigDirs()...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			layers = append(layers, l)
			continue
		case key == "", CompatVariables[name].Refusal != "" && isZero(value):
			continue
		case name == "MSWEA_MODEL_NAME":
			value = strconv.Quote(trimProvider(value))
		}
		l, err := configs.ParseSetting(name, key, value)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// isZero reports whether value is the number 0.
func isZero(value string) bool {
	n, err := strconv.ParseFloat(value, 64)
	return err == nil && n == 0
}

// CheckCompat returns an error for limits of mini-swe-agent that a single task cannot enforce, and
// for flags that mini does not have. base is the name of the command's built-in configuration.
func CheckCompat(set *pflag.FlagSet, environ []string, base string) error {
	names, values := CompatEnviron(environ)
	for _, name := range names {
		if text := CompatVariables[name].Refusal; text != "" && base == "mini" && !isZero(values[name]) {
			return usage.Errorf("%s is set: %s; unset it", name, text)
		}
	}
	for flag, answer := range compatFlagAnswers {
		if set.Changed(flag) {
			return usage.Errorf("--%s: %s", flag, answer)
		}
	}
	return nil
}

// compatNotes returns a note for each variable of mini-swe-agent that mini does not know or does
// not support. It returns none for variables that mini ignores silently.
func compatNotes(environ []string) []string {
	var notes []string
	names, values := CompatEnviron(environ)
	for _, name := range names {
		v, known := CompatVariables[name]
		switch {
		case name == "MSWEA_DOCKER_EXECUTABLE" && values[name] == "docker":
		case !known:
			notes = append(notes, text.Printable(name)+" is set, and mini does not know it")
		case v.note != "":
			notes = append(notes, name+" has no effect: "+v.note)
		}
	}
	return notes
}

// PrintCompatNotes prints the notes of compatNotes.
func PrintCompatNotes(w io.Writer) {
	for _, note := range compatNotes(os.Environ()) {
		_, _ = fmt.Fprintln(w, "mini: note:", note)
	}
}

// trimProvider removes the prefix by which litellm selects a server with OpenAI's API.
func trimProvider(name string) string {
	for _, prefix := range []string{"openai/", "hosted_vllm/"} {
		if trimmed, ok := strings.CutPrefix(name, prefix); ok {
			return trimmed
		}
	}
	return name
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
	prefix, name, ok := strings.Cut(cfg.Model.Name, "/")
	if cfg.Model.Class == "scripted" || cfg.Model.BaseURL != "" {
		return nil
	}
	if !ok {
		switch name := cfg.Model.Name; {
		case cfg.Model.Class == "openai" && strings.HasPrefix(name, "claude-"):
			return usage.Errorf("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s, or -c model.base_url=URL for a server that has it", name, name)
		case cfg.Model.Class == "anthropic" && strings.HasPrefix(name, "gpt-"):
			return usage.Errorf("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", name)
		}
		return nil
	}
	if prefix == cfg.Model.Class {
		return usage.Errorf("model %.80q: the provider is not part of the name here; use -m %.80s", cfg.Model.Name, name)
	}
	if prefix == "anthropic" {
		return usage.Errorf("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s", cfg.Model.Name, name)
	}
	if cfg.Model.Class == "anthropic" {
		return usage.Errorf("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", cfg.Model.Name)
	}
	return usage.Errorf("model %.80q: OpenAI has no such model; for another provider set the address of its OpenAI-compatible API: -c model.base_url=URL", cfg.Model.Name)
}
