package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner/report"
)

// What users of mini-swe-agent bring along: its variables, flags and commands
// are understood, or answered with what to use instead.

// peerVariable is what mini makes of a variable of mini-swe-agent. One without
// key, note and refusal is heeded elsewhere, or has nothing to do here.
type peerVariable struct {
	key     string // the setting it stands for
	note    string // says once that it has no effect
	refusal string // says why no task is started, which has no bound of this kind; 0 is no limit, and fine
}

var peerVariables = map[string]peerVariable{
	"MSWEA_MODEL_NAME":                     {key: "model.model_name"},
	"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": {key: "model.max_tries"},
	"MSWEA_MINI_CONFIG_PATH":               {},
	"MSWEA_CONFIG_DIR":                     {},
	"MSWEA_COST_TRACKING":                  {}, // an unknown price is never an error here
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
		key: "run.total_cost_limit", refusal: "it bounds batches; a task is bounded by -l DOLLARS",
	},
	"MSWEA_GLOBAL_CALL_LIMIT": {
		key: "run.total_calls", refusal: "it bounds batches; a task is bounded by -c agent.step_limit=N",
	},
}

// peerEnviron are the variables of mini-swe-agent that are set, in order.
func peerEnviron(environ []string) (names []string, values map[string]string) {
	values = map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		_, known := peerVariables[name]
		if value != "" && (known || strings.HasPrefix(name, "MSWEA_")) {
			values[name] = value
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, values
}

// peerLayers are the variables that stand for settings, as layers with their
// names. base is the shipped configuration of the command.
func peerLayers(environ []string, base string) ([]configs.Layer, error) {
	var layers []configs.Layer
	names, values := peerEnviron(environ)
	for _, name := range names {
		value, key := values[name], peerVariables[name].key
		switch {
		case name == "MSWEA_MINI_CONFIG_PATH" && base == "mini":
			l, err := configs.Read(value, configDirs()...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			layers = append(layers, l)
			continue
		case key == "", peerVariables[name].refusal != "" && isZero(value):
			continue
		case name == "MSWEA_MODEL_NAME":
			value = strconv.Quote(ownName(value))
		}
		l, err := configs.Setting(name, key, value)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// isZero says whether a limit is none.
func isZero(value string) bool {
	n, err := strconv.ParseFloat(value, 64)
	return err == nil && n == 0
}

// refusal finds what must not be passed over in silence by a task, since it
// bounds money, and flags that have no meaning here. base is the shipped
// configuration of the command.
func refusal(set *pflag.FlagSet, environ []string, base string) error {
	names, values := peerEnviron(environ)
	for _, name := range names {
		if text := peerVariables[name].refusal; text != "" && base == "mini" && !isZero(values[name]) {
			return usagef("%s is set: %s; unset it", name, text)
		}
	}
	for flag, answer := range peerFlagAnswers {
		if set.Changed(flag) {
			return usagef("--%s: %s", flag, answer)
		}
	}
	return nil
}

// compatNotes are lines about variables of mini-swe-agent that have no effect.
func compatNotes(environ []string) []string {
	var notes []string
	names, values := peerEnviron(environ)
	for _, name := range names {
		v, known := peerVariables[name]
		switch {
		case name == "MSWEA_DOCKER_EXECUTABLE" && values[name] == "docker":
		case !known:
			notes = append(notes, report.Printable(name)+" is set, and mini does not know it")
		case v.note != "":
			notes = append(notes, name+" has no effect: "+v.note)
		}
	}
	return notes
}

// sayNotes shows them, once at the start of a run.
func sayNotes(w io.Writer) error {
	for _, note := range compatNotes(os.Environ()) {
		if _, err := fmt.Fprintln(w, "mini: note:", note); err != nil {
			return err
		}
	}
	return nil
}

// ownName is a model's name as its server knows it. litellm puts a provider
// before it, of which these two are servers with OpenAI's API.
func ownName(name string) string {
	for _, provider := range []string{"openai/", "hosted_vllm/"} {
		if own, ok := strings.CutPrefix(name, provider); ok {
			return own
		}
	}
	return name
}

// checkModelName finds a name in litellm's form, or one of the other's models, where
// it goes to OpenAI or to Anthropic, who would refuse it for every instance.
func checkModelName(cfg *configs.Resolved) error {
	for _, one := range modelsOf(cfg) {
		if err := checkOneName(one); err != nil {
			return err
		}
	}
	return nil
}

func checkOneName(cfg *configs.Resolved) error {
	provider, own, ok := strings.Cut(cfg.Model.Name, "/")
	if cfg.Model.Class == "scripted" || cfg.Model.BaseURL != "" {
		return nil
	}
	if !ok {
		switch name := cfg.Model.Name; {
		case cfg.Model.Class == "openai" && strings.HasPrefix(name, "claude-"):
			return usagef("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s, or -c model.base_url=URL for a server that has it", name, name)
		case cfg.Model.Class == "anthropic" && strings.HasPrefix(name, "gpt-"):
			return usagef("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", name)
		}
		return nil
	}
	if provider == cfg.Model.Class {
		return usagef("model %.80q: the provider is not part of the name here; use -m %.80s", cfg.Model.Name, own)
	}
	if provider == "anthropic" {
		return usagef("model %.80q: OpenAI has no such model; use --model-class anthropic -m %.80s", cfg.Model.Name, own)
	}
	if cfg.Model.Class == "anthropic" {
		return usagef("model %.80q: Anthropic has no such model; leave --model-class anthropic out, or say -c model.base_url=URL", cfg.Model.Name)
	}
	return usagef("model %.80q: OpenAI has no such model; for another provider set the address of its OpenAI-compatible API: -c model.base_url=URL", cfg.Model.Name)
}
