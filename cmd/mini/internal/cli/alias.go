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

// An alias is a command of mini-swe-agent that stands for a command of mini.
type alias struct {
	names []string
	// args returns the arguments of mini that the arguments after the name stand for.
	args func(rest []string) ([]string, error)
	// ofExtra means that the name stands for this command only after mini-extra.
	ofExtra bool
}

// aliases are the commands of mini-swe-agent, besides mini itself.
var aliases = []alias{
	{names: []string{"swebench"}, args: func(rest []string) ([]string, error) { return benchArgs(rest), nil }},
	{names: []string{"swebench-single"}, args: singleArgs},
	{names: []string{"programbench"}, args: func([]string) ([]string, error) {
		return nil, usage.Errorf("programbench: mini has no ProgramBench; see mini datasets list")
	}},
	{names: []string{"config"}, args: configArgs},
	{names: []string{"inspector", "inspect", "i"}, args: inspectArgs, ofExtra: true},
}

// extraNames are the names of the program mini-extra, and of the command that stands for it.
var extraNames = []string{"extra", "mini-extra", "mini-e"}

// Arguments returns the arguments of a program's argv. A program with the name mini-extra or mini-e
// gets the command "extra" as its first argument.
func Arguments(argv []string) []string {
	if name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe"); slices.Contains(extraNames[1:], name) {
		return append([]string{extraNames[0]}, argv[1:]...)
	}
	return argv[1:]
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
	for _, a := range aliases {
		if !slices.Contains(a.names, name) || a.ofExtra && !isExtra {
			continue
		}
		expanded, err := a.args(rest)
		if err != nil || slices.Equal(expanded, args) {
			return expanded, err
		}
		shown := expanded
		if name == "config" { // what follows may be a key
			shown = expanded[:min(len(expanded), 3)]
		}
		_, err = fmt.Fprintln(w, "mini: running", text.Printable("mini "+shellWords(shown)))
		return expanded, err
	}
	if isExtra && len(rest) == 0 && slices.Contains([]string{"--help", "-h", "--version"}, name) {
		return []string{name}, nil
	}
	if isExtra {
		return nil, usage.Errorf("mini-extra: give one of its commands: config, inspect, swebench, swebench-single; mini --help shows those of mini")
	}
	return args, nil
}

// benchArgs returns the arguments of mini bench for those of mini-extra swebench. The default dataset
// is the split dev of lite; other sets without --split have mini's default, because most have no
// split dev. more are further defaults. mini bench never asks, so the flags against questions are left
// out.
func benchArgs(rest []string, more ...string) []string {
	args := []string{"bench"}
	subset, hasSubset := flagValue(rest, "--subset", "")
	if !hasSubset {
		args = append(args, "--subset", "lite")
	}
	if _, ok := flagValue(rest, "--split", ""); !ok && slices.Contains([]string{"", "lite", "full", "multimodal"}, subset) {
		args = append(args, "--split", "dev")
	}
	args = append(args, more...)
	for _, arg := range rest {
		if !slices.Contains([]string{"-y", "--yolo", "--exit-immediately"}, arg) {
			args = append(args, arg)
		}
	}
	return args
}

// singleArgs returns the arguments of mini bench for those of mini-extra swebench-single. Its
// default is the first instance; its -o is the file of a trajectory, and becomes a folder.
func singleArgs(rest []string) ([]string, error) {
	var first []string
	if _, ok := flagValue(rest, "--instance", "-i"); !ok {
		first = []string{"-i", "0"}
	}
	args := benchArgs(rest, first...)
	for i, arg := range args {
		if output, ok := flagValue([]string{arg, ""}, "--output", "-o"); ok && output != "" {
			args[i] = strings.TrimSuffix(strings.TrimSuffix(arg, ".json"), ".traj")
		} else if i > 0 && (args[i-1] == "-o" || args[i-1] == "--output") {
			args[i] = strings.TrimSuffix(strings.TrimSuffix(arg, ".json"), ".traj")
		}
	}
	return args, nil
}

// configArgs returns the arguments of mini config for those of mini-extra config: its model is a
// setting in mini.
func configArgs(rest []string) ([]string, error) {
	args := append([]string{"config"}, rest...)
	if len(rest) >= 2 && (rest[0] == "set" || rest[0] == "unset") && rest[1] == "MSWEA_MODEL_NAME" {
		args[2] = "model.model_name"
	}
	return args, nil
}

// inspectArgs returns the arguments of mini inspect for those of mini-extra inspector, which shows
// the trajectories below the current folder unless it gets a path. mini always has the reasoning.
func inspectArgs(rest []string) ([]string, error) {
	args := append([]string{"inspect"}, slices.DeleteFunc(slices.Clone(rest), func(arg string) bool {
		return arg == "--reasoning" || arg == "--no-reasoning"
	})...)
	if !slices.ContainsFunc(args[1:], func(arg string) bool { return !strings.HasPrefix(arg, "-") }) {
		args = append(args, ".")
	}
	return args, nil
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
