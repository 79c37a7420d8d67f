package server

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/process"
)

// A command that may call tools finds mini-tool at the end of its PATH. Start-up files
// of the shell may reset PATH: /etc/profile does in a login shell, and so may the file
// named by BASH_ENV in any bash. If the shell reads such files, the script is prefixed
// with a check of PATH, on its first line, so that line numbers do not change. Other
// interpreters, and shells that read no files, get the environment only: bash would
// show the prefix in the message of a syntax error.

// A login shell that the command itself starts has no such prefix. Exported bash
// functions survive a reset of PATH, so mini-tool is also defined as a function. Bash
// in POSIX mode does not import such functions, and dash does not pass them on, so the
// PATH is still needed.

// functionVariable is the variable in which bash exports a function named mini-tool.
const functionVariable = "BASH_FUNC_" + env.ToolProgram + "%%"

// pathVariable holds the code that the prefix runs. The code prints nothing, even if
// PATH is unset or read-only.
const pathVariable = "MINI_TOOL_PATH"

// scriptPrefix runs the code, even under "set -u".
const scriptPrefix = `eval "${` + pathVariable + `-}"; `

// defaultPath is used for an environment without PATH. Shells have a default of their
// own, but do not export it.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// withTool returns the script and environment of a command, changed so that the command
// finds mini-tool in dir. It changes nothing if dir is empty or contains a colon, a
// single quote, a NUL or a newline.
func withTool(dir string, shell []string, script string, environ []string) (string, []string) {
	if dir == "" || strings.ContainsAny(dir, ":'\x00\n") {
		return script, environ
	}
	oldPath, ok := value(environ, "PATH")
	if !ok {
		oldPath = defaultPath
	}
	added := map[string]string{
		"PATH":           oldPath + ":" + dir,
		functionVariable: `() { '` + dir + "/" + env.ToolProgram + `' "$@"; }`,
	}
	if export := exportCommand(shell, environ); export != "" && process.IsValidScript(scriptPrefix+script) {
		added[pathVariable] = `case ":${PATH-}:" in *':` + dir + `:'*);;*)` + export + ` PATH="${PATH:+$PATH:}"'` + dir + `' 2>/dev/null||:;;esac`
		script = scriptPrefix + script
	}
	return script, process.MergeEnv(environ, added)
}

// exportCommand returns the shell command that exports a variable without ending the
// script if PATH is read-only. It returns "" if the interpreter is not a shell that
// reads start-up files before the script. A shell behind another program, such as env,
// counts as one that does.
func exportCommand(shell, environ []string) (export string) {
	if len(shell) == 0 {
		shell = []string{"bash", "-c"}
	}
	shellIndex := slices.IndexFunc(shell, isShell) // not always the first: it may follow env, for example
	if flags := shell[len(shell)-1]; shellIndex < 0 || !strings.HasPrefix(flags, "-") || !strings.HasSuffix(flags, "c") {
		return "" // the script is not shell code
	}
	isSet := func(name string) bool {
		text, _ := value(environ, name)
		return text != ""
	}
	switch name := path.Base(shell[shellIndex]); {
	case name == "zsh":
		return "export" // the "command" of zsh does not run builtins
	case slices.ContainsFunc(shell[shellIndex+1:], isLoginFlag), shellIndex > 0:
	case name == "bash" && (isSet("BASH_ENV") || isSet("SSH_CLIENT") || isSet("SSH2_CLIENT")):
	case name == "ksh" && isSet("ENV"):
	default:
		return ""
	}
	return "command export"
}

// isShell reports whether a program is a shell. It excludes restricted shells, whose
// PATH is read-only.
func isShell(program string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "ash", "ksh", "zsh"}, path.Base(program))
}

func isLoginFlag(flag string) bool {
	return flag == "--login" || strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.Contains(flag, "l")
}

// value returns the value of a variable; of duplicates the last one.
func value(environ []string, name string) (text string, ok bool) {
	for _, kv := range slices.Backward(environ) {
		if text, ok = strings.CutPrefix(kv, name+"="); ok {
			return text, true
		}
	}
	return "", false
}
