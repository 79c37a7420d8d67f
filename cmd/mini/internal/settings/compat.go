package settings

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
)

// compatVariable describes how mini treats an environment variable of mini-swe-agent. A variable
// with the zero compatVariable is ignored silently, or handled by its name (MSWEA_MINI_CONFIG_PATH
// and MSWEA_CONFIG_DIR).
type compatVariable struct {
	Key     string // the setting that the variable sets
	note    string // printed with a note that the variable has no effect
	taskKey string // the limit of a single task that the variable bounds
}

// CompatVariables are the variables of mini-swe-agent that mini knows.
var CompatVariables = map[string]compatVariable{
	"MSWEA_MODEL_NAME":                     {Key: "model.model_name"},
	"MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": {Key: "model.max_tries"},
	"MSWEA_MINI_CONFIG_PATH":               {},
	"MSWEA_CONFIG_DIR":                     {},
	"MSWEA_COST_TRACKING":                  {Key: "model.cost_tracking"},
	"MSWEA_CONFIGURED":                     {},
	"MSWEA_SILENT_STARTUP":                 {},
	"MSWEA_GLOBAL_CONFIG_DIR":              {}, // the folder of configs.PeerDotenv
	"MSWEA_MODEL_API_KEY":                  {note: "set the variable of the provider, such as OPENAI_API_KEY"},
	"MSWEA_INSPECTOR_STYLE_PATH":           {},
	"MSWEA_DEFAULT_RUN":                    {note: "mini has no other entry points"},
	"MSWEA_SINGULARITY_EXECUTABLE":         {note: "mini has no Singularity or Apptainer yet"},
	"MSWEA_BUBBLEWRAP_EXECUTABLE":          {note: "mini takes bwrap from the PATH"},
	"MSWEA_DOCKER_EXECUTABLE":              {note: "mini talks to the engine itself; set DOCKER_HOST, also for podman"},
	"LITELLM_MODEL_REGISTRY_PATH":          {note: "set the prices as model.price, to have costs counted"},
	"MSWEA_GLOBAL_COST_LIMIT": {
		Key: "run.total_cost_limit", taskKey: "agent.cost_limit",
	},
	"MSWEA_GLOBAL_CALL_LIMIT": {
		Key: "run.total_calls", taskKey: "agent.step_limit",
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
		case key == "", CompatVariables[name].taskKey != "" && isZero(value):
			continue
		case name == "MSWEA_MODEL_NAME":
			value = strconv.Quote(value)
		}
		l, err := configs.ParseSetting(variableLayer(name), key, value)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// variableLayer returns the name of the layer of a variable: the variable, with the .env file that
// sets it.
func variableLayer(name string) string {
	if file := configs.DotenvFile(name); file != "" {
		return file + ": " + name
	}
	return name
}

// splitEnviron returns the variables that a .env file has set, and the others.
func splitEnviron(environ []string) (ofFiles, others []string) {
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); configs.DotenvFile(name) != "" {
			ofFiles = append(ofFiles, kv)
		} else {
			others = append(others, kv)
		}
	}
	return ofFiles, others
}

// isZero reports whether value is the number 0.
func isZero(value string) bool {
	n, err := strconv.ParseFloat(value, 64)
	return err == nil && n == 0
}

// boundTask returns layers that lower the limits of a single task to those of mini-swe-agent's
// variables.
func boundTask(overlay *configs.Overlay, environ []string) ([]configs.Layer, error) {
	var layers []configs.Layer
	names, values := CompatEnviron(environ)
	for _, name := range names {
		key := CompatVariables[name].taskKey
		if key == "" {
			continue
		}
		current := 0.0
		if err := overlay.Decode(key, &current); err != nil {
			return nil, err
		}
		if limit, err := strconv.ParseFloat(values[name], 64); err == nil && (limit == 0 || current > 0 && current <= limit) {
			continue
		}
		l, err := configs.ParseSetting(variableLayer(name), key, values[name])
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
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
			notes = append(notes, variableLayer(name)+" has no effect: "+v.note)
		}
	}
	return notes
}

// ConfigDirs returns the folders where -c searches for a file after the current one:
// $MSWEA_CONFIG_DIR, if it is set.
func ConfigDirs() []string {
	if dir := os.Getenv("MSWEA_CONFIG_DIR"); dir != "" {
		return []string{dir}
	}
	return nil
}

// HarnessFlagAnswers maps flags of swebench.harness.run_evaluation and sb-cli submit to advice for
// mini eval.
var HarnessFlagAnswers = map[string]string{
	"dataset_name":        "use --subset SET",
	"predictions_path":    "use -p PREDS",
	"instance_ids":        "use -i ID, once for each",
	"max_workers":         "use -w N",
	"run_id":              "use --run-id ID",
	"report_dir":          "use -o FOLDER, where the official summary is too",
	"output_dir":          "use -o FOLDER, where the official summary is too",
	"rewrite_reports":     "use mini grade FOLDER, which judges the saved logs again",
	"overwrite":           "leave it out; what has a verdict that holds is not run again, and -o names another folder",
	"namespace":           "leave it out; rows name their images",
	"instance_image_tag":  "leave it out; rows name their images",
	"env_image_tag":       "leave it out; rows name their images",
	"force_rebuild":       "leave it out; mini builds no images",
	"cache_level":         "leave it out; images stay, -c run.image_budget=80GB bounds them, mini images prune removes them",
	"clean":               "leave it out; images stay, -c run.image_budget=80GB bounds them, mini images prune removes them",
	"open_file_limit":     "leave it out; mini doctor says whether there are enough",
	"modal":               "mini runs on container engines; leave it out",
	"gen_report":          "leave it out; a report is always written",
	"verify_submission":   "leave it out; predictions are checked before anything runs",
	"wait_for_evaluation": "leave it out; mini waits",
}

// AddVisualFlag adds -v. It means --version if it is the only flag, else --visual of
// mini-swe-agent.
func AddVisualFlag(f *pflag.FlagSet) {
	f.BoolP("visual", "v", false, "")
	f.Lookup("visual").Hidden = true
}

// IsVersionOnly reports whether -v is the only flag of the command line.
func IsVersionOnly(f *pflag.FlagSet) bool { return f.Changed("visual") && f.NFlag() == 1 }
