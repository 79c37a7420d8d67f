package server

import (
	"path"
	"slices"
	"strings"

	"github.com/minibench/mini/env/process"
)

// A command that may ask finds mini-tool at the end of its PATH. Start-up files
// of the shell may set PATH anew: /etc/profile does in a login shell, and what
// BASH_ENV names in any bash. Where a shell reads such files, the script therefore
// begins by looking, on its first line, so that the numbers of all lines stay.
// Other interpreters have the environment alone, and so have shells that read
// nothing: there bash would show what stands before the script in its message on
// a syntax error.

// pathVariable holds what such a script runs first. It says nothing, whatever
// happens: PATH may be unset, or made read-only.
const pathVariable = "MINI_TOOL_PATH"

// firstWords run it, also where variables that are not set are errors.
const firstWords = `eval "${` + pathVariable + `-}"; `

// usualPath is for an environment without PATH. Shells have such a one of their
// own then, but do not hand it on.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// withTool makes a command find the program in dir: its interpreter, script and
// environment, of which the latter two are returned. An empty dir changes
// nothing.
func withTool(dir string, shell []string, script string, environ []string) (string, []string) {
	if dir == "" || strings.ContainsAny(dir, ":'\x00") {
		return script, environ
	}
	before, ok := value(environ, "PATH")
	if !ok {
		before = usualPath
	}
	added := map[string]string{"PATH": before + ":" + dir}
	if export := readsFiles(shell, environ); export != "" && process.Fits(firstWords+script) {
		added[pathVariable] = `case ":${PATH-}:" in *':` + dir + `:'*);;*)` + export + ` PATH="${PATH:+$PATH:}"'` + dir + `' 2>/dev/null||:;;esac`
		script = firstWords + script
	}
	return script, process.Merge(environ, added)
}

// readsFiles says whether an interpreter is a shell that may run others' files
// before the script: how it exports a variable then, so that a PATH that is
// read-only does not end the script.
func readsFiles(shell, environ []string) (export string) {
	if len(shell) == 0 {
		shell = []string{"bash", "-c"}
	}
	at := slices.IndexFunc(shell, isShell) // not always the first: it may stand behind env, say
	if flags := shell[len(shell)-1]; at < 0 || !strings.HasPrefix(flags, "-") || !strings.HasSuffix(flags, "c") {
		return "" // the script is no text for a shell
	}
	set := func(name string) bool {
		text, _ := value(environ, name)
		return text != ""
	}
	switch name := path.Base(shell[at]); {
	case name == "zsh":
		return "export" // its "command" knows no builtins
	case slices.ContainsFunc(shell[at+1:], asksForLogin), at > 0:
	case name == "bash" && (set("BASH_ENV") || set("SSH_CLIENT") || set("SSH2_CLIENT")):
	case name == "ksh" && set("ENV"):
	default:
		return ""
	}
	return "command export"
}

// isShell leaves out restricted ones: there PATH stays what it is.
func isShell(program string) bool {
	return slices.Contains([]string{"bash", "sh", "dash", "ash", "ksh", "zsh"}, path.Base(program))
}

func asksForLogin(flag string) bool {
	return flag == "--login" || strings.HasPrefix(flag, "-") && !strings.HasPrefix(flag, "--") && strings.Contains(flag, "l")
}

// value is that of a variable; the last one counts.
func value(environ []string, name string) (text string, ok bool) {
	for _, kv := range slices.Backward(environ) {
		if text, ok = strings.CutPrefix(kv, name+"="); ok {
			return text, true
		}
	}
	return "", false
}
