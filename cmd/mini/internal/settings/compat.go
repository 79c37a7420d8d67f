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

// oldVariable is a variable of mini-swe-agent that is set, with what takes its place.
type oldVariable struct {
	configs.OldName
	name, value string
	isKnown     bool
	layer       string // the name of its layer: the variable, with the .env file that sets it
	isOfFile    bool   // a .env file sets it
}

// oldVariables returns the variables of mini-swe-agent in the environment, sorted by name: those that
// mini knows, and all whose names begin with MSWEA_. It omits empty variables.
func oldVariables() []oldVariable {
	var found []oldVariable
	for _, kv := range os.Environ() {
		v := oldVariable{}
		v.name, v.value, _ = strings.Cut(kv, "=")
		v.OldName, v.isKnown = configs.FindOldName("$" + v.name)
		if v.value == "" || !v.isKnown && !strings.HasPrefix(v.name, "MSWEA_") {
			continue
		}
		v.layer = v.name
		if file := configs.DotenvFile(v.name); file != "" {
			v.layer, v.isOfFile = file+": "+v.name, true
		}
		found = append(found, v)
	}
	slices.SortFunc(found, func(a, b oldVariable) int { return strings.Compare(a.name, b.name) })
	return found
}

// OverridingVariable returns the variable of mini-swe-agent in the shell that sets a key, or "".
func OverridingVariable(key string) string {
	for _, v := range oldVariables() {
		if set, _, _ := strings.Cut(v.New, " "); set == key && !v.isOfFile {
			return v.name
		}
	}
	return ""
}

// compatLayers returns the settings from variables of mini-swe-agent, one layer for each variable
// that has settings: those that a .env file sets, and the others. base is the name of the command's
// built-in configuration.
func compatLayers(base string) (ofFile, ofShell []configs.Layer, err error) {
	for _, v := range oldVariables() {
		key, taskKey, _ := strings.Cut(v.New, " ")
		var l configs.Layer
		number, numberErr := strconv.ParseFloat(v.value, 64)
		switch {
		case v.name == "MSWEA_MINI_CONFIG_PATH" && base == "mini":
			if l, err = configs.ReadArg(v.value, ConfigDirs()...); err != nil {
				err = fmt.Errorf("%s: %w", v.name, err)
			}
		case key == "", taskKey != "" && numberErr == nil && number == 0: // no limit
			continue
		case v.name == "MSWEA_MODEL_NAME":
			l, err = configs.ParseSetting(v.layer, key, strconv.Quote(v.value))
		default:
			l, err = configs.ParseSetting(v.layer, key, v.value)
		}
		if err != nil {
			return nil, nil, err
		}
		if v.isOfFile {
			ofFile = append(ofFile, l)
		} else {
			ofShell = append(ofShell, l)
		}
	}
	return ofFile, ofShell, nil
}

// boundTask returns layers that lower the limits of a single task to those of mini-swe-agent's
// variables.
func boundTask(overlay *configs.Overlay) ([]configs.Layer, error) {
	var layers []configs.Layer
	for _, v := range oldVariables() {
		_, key, isLimit := strings.Cut(v.New, " ")
		if !isLimit {
			continue
		}
		current := 0.0
		if err := overlay.Decode(key, &current); err != nil {
			return nil, err
		}
		if limit, err := strconv.ParseFloat(v.value, 64); err == nil && (limit == 0 || current > 0 && current <= limit) {
			continue
		}
		l, err := configs.ParseSetting(v.layer, key, v.value)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// compatNotes returns a note for each variable of mini-swe-agent that mini does not know or does
// not support. It returns none for variables that mini ignores silently.
func compatNotes() []string {
	var notes []string
	for _, v := range oldVariables() {
		switch {
		case v.name == "MSWEA_DOCKER_EXECUTABLE" && v.value == "docker":
		case !v.isKnown:
			notes = append(notes, text.Printable(v.name)+" is set, and mini does not know it")
		case v.Why != "":
			notes = append(notes, v.layer+" has no effect: "+v.Why)
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

// AddVisualFlag adds -v. It means --version if it is the only flag, else --visual of
// mini-swe-agent.
func AddVisualFlag(f *pflag.FlagSet) {
	f.BoolP("visual", "v", false, "")
	f.Lookup("visual").Hidden = true
}

// IsVersionOnly reports whether -v is the only flag of the command line.
func IsVersionOnly(f *pflag.FlagSet) bool { return f.Changed("visual") && f.NFlag() == 1 }
