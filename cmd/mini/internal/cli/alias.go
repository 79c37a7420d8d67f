package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
)

// extraNames are the names of the program mini-extra, and of the command that stands for it.
var extraNames = []string{"extra", "mini-extra", "mini-e"}

// Arguments returns the arguments of a program's argv. A program with the name mini-extra or mini-e
// gets the command "extra" as its first argument. The optional value of --resume may be an argument of its
// own.
func Arguments(argv []string) []string {
	args := slices.Clone(argv[1:])
	if name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe"); slices.Contains(extraNames[1:], name) {
		return append([]string{extraNames[0]}, args...)
	}
	if i := slices.Index(args, "--resume"); i >= 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
		args = slices.Replace(args, i, i+2, "--resume="+args[i+1])
	}
	return args
}

// otherCommands are commands of other agents, and those that mini had, with what does the same.
var otherCommands = map[string]string{
	"chat":         "mini alone begins a session",
	"exec":         "mini -p TASK does a task without a session",
	"fake-model":   "it is a program of the source code now: go run ./model/fake/serve",
	"login":        "mini config setup asks for a model and its key",
	"programbench": "mini has no ProgramBench; see mini datasets list",
	"resume":       "mini --continue resumes the last session of this folder, and mini --resume shows all",
	"run":          "mini -t TASK works on one task here, mini bench on a dataset",
	"trajectories": "mini inspect shows trajectories, and mini import and mini export convert them",
}

// expandAlias replaces a command of mini-swe-agent by the command of mini that it stands for, and
// says so on w. It returns other arguments unchanged.
func expandAlias(args []string, w io.Writer) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	name, rest := args[0], args[1:]
	isExtra := slices.Contains(extraNames, name)
	if isExtra && len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	var expanded []string
	switch {
	case name == "swebench" || name == "swebench-single":
		expanded = benchArgs(rest, name == "swebench-single")
	case !isExtra && name == "version" && len(rest) == 0:
		return []string{"--version"}, nil
	case otherCommands[name] != "":
		return nil, usage.Errorf("%s: %s", name, otherCommands[name])
	case name == "config":
		expanded = configArgs(rest)
	case isExtra && slices.Contains([]string{"inspector", "inspect", "i"}, name):
		expanded = inspectArgs(rest)
	case isExtra && len(rest) == 0 && slices.Contains([]string{"--help", "-h", "--version"}, name):
		return []string{name}, nil
	case isExtra:
		return nil, usage.Errorf("mini-extra: give one of its commands: config, inspect, swebench, swebench-single; mini --help shows those of mini")
	}
	if expanded == nil || slices.Equal(expanded, args) {
		return args, nil
	}
	shown := expanded
	if name == "config" { // what follows may be a key
		shown = expanded[:min(len(expanded), 3)]
	}
	_, err := fmt.Fprintln(w, "mini: running", text.Printable("mini "+shellWords(shown)))
	return expanded, err
}

// benchArgs returns the arguments of mini bench for those of mini-extra swebench, or swebench-single if
// isSingle is set. The default dataset is the split dev of lite; other sets without --split have mini's
// default, because most have no split dev. mini bench never asks, so the flags against questions are left
// out. The default of a single instance is the first; its -o is the file of a trajectory, and becomes a
// folder.
func benchArgs(rest []string, isSingle bool) []string {
	args := []string{"bench"}
	subset, hasSubset := flagValue(rest, "--subset", "")
	if !hasSubset {
		args = append(args, "--subset", "lite")
	}
	if _, ok := flagValue(rest, "--split", ""); !ok && slices.Contains([]string{"", "lite", "full", "multimodal"}, subset) {
		args = append(args, "--split", "dev")
	}
	if _, ok := flagValue(rest, "--instance", "-i"); isSingle && !ok {
		args = append(args, "-i", "0")
	}
	for i, arg := range rest {
		isOutput := i > 0 && (rest[i-1] == "-o" || rest[i-1] == "--output") || strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--output=")
		switch {
		case slices.Contains([]string{"-y", "--yolo", "--exit-immediately"}, arg):
			continue
		case isSingle && isOutput:
			arg = strings.TrimSuffix(strings.TrimSuffix(arg, ".json"), ".traj")
		}
		args = append(args, arg)
	}
	return args
}

// configArgs returns the arguments of mini config for those of mini-extra config: its model is a
// setting in mini.
func configArgs(rest []string) []string {
	args := append([]string{"config"}, rest...)
	if len(rest) >= 2 && (rest[0] == "set" || rest[0] == "unset") && rest[1] == "MSWEA_MODEL_NAME" {
		args[2] = "model.model_name"
	}
	return args
}

// inspectArgs returns the arguments of mini inspect for those of mini-extra inspector, which shows
// the trajectories below the current folder unless it gets a path. mini always has the reasoning.
func inspectArgs(rest []string) []string {
	args := append([]string{"inspect"}, slices.DeleteFunc(slices.Clone(rest), func(arg string) bool {
		return arg == "--reasoning" || arg == "--no-reasoning"
	})...)
	if !slices.ContainsFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }) {
		args = append(args, ".")
	}
	return args
}

// flagValue returns the value of a flag in args, as --name VALUE, --name=VALUE, -n VALUE or -nVALUE.
// short may be empty.
func flagValue(args []string, name, short string) (value string, ok bool) {
	for i, arg := range args {
		switch {
		case arg == "--":
			return "", false
		case arg == name, arg == short && short != "":
			if i+1 < len(args) {
				value = args[i+1]
			}
			return value, true
		case strings.HasPrefix(arg, name+"="):
			return arg[len(name)+1:], true
		case short != "" && strings.HasPrefix(arg, short) && !strings.HasPrefix(arg, "--"):
			return arg[len(short):], true
		}
	}
	return "", false
}

// plainWord matches words that a shell does not change.
var plainWord = lazyregexp.New(`^[A-Za-z0-9_./:=,@%+-]+$`)

// shellWords returns args as a user would type them.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		if words[i] = arg; !plainWord.MatchString(arg) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
