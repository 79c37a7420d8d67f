// Package external runs agents other than mini's own: any program in the sandbox that
// asks a model over HTTP. A definition says how the program is started. Its model requests
// leave the sandbox through package agent/bridge; its conversation becomes the records of
// an ordinary attempt.
//
//	def, err := external.Parse(yaml)
//	a, err := external.New(own, def, external.Config{ModelName: "gpt-5", Dialects: []string{"chat"}})
//	out := a.Run(ctx, session)
package external

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model/dialect"
)

// How the agent gets the task.
const (
	PromptStdin    = "stdin"    // on standard input
	PromptFile     = "file"     // in the file $MINI_PROMPT_FILE
	PromptArgument = "argument" // in the variable $MINI_PROMPT, for an argument of the command
)

const (
	// maxArgument bounds a task that is an argument: Linux allows 128 KiB.
	maxArgument = 120 << 10
	maxInstall  = 32 << 10 // bytes of an install script
)

// Definition says how an agent is started. Command is a shell script. In Env and Files,
// only the variables $MINI_URL (of the bridge), $MINI_TOKEN (the API key), $MINI_MODEL,
// $MINI_STATE (an empty folder outside the repository), $MINI_PROMPT_FILE and $MINI_AGENT
// (Folder) are replaced.
type Definition struct {
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	// Folder is a folder of the host with the agent's program, relative to the definition.
	Folder string `yaml:"folder"`
	// Install is a script for sh -e that installs the program: root runs it once per image.
	Install string `yaml:"install"`
	// InstallNetwork is the network of Install: "bridge" (default) or "none".
	InstallNetwork string `yaml:"install_network"`
	// Version is a command that prints the agent's version; may be empty.
	Version string `yaml:"version"`
	Prompt  string `yaml:"prompt"`
	// Task is the text for the agent; {task}, {id} and {dir} stand for the task, the
	// instance and the working directory. Default: "{task}".
	Task string `yaml:"task"`
	// Dialect is the one in which the agent asks; empty if it may be any.
	Dialect string            `yaml:"dialect"`
	Env     map[string]string `yaml:"env"`
	// Files are written before the start; relative names are below $MINI_STATE.
	Files map[string]string `yaml:"files"`
	// Exclude are .gitignore patterns of new files that are not part of the patch.
	Exclude []string `yaml:"exclude"`
	// Tools says that the agent's main conversation always offers tools, so that requests
	// without tools are for titles, summaries and the like.
	Tools bool `yaml:"tools"`
	// ServerTools is "allow" to keep the tools that run at the provider, which reaches the
	// network.
	ServerTools string `yaml:"server_tools"`

	sha256 string // of the definition, in hex
}

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Parse reads a definition in YAML.
func Parse(data []byte) (Definition, error) {
	var d Definition
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("read agent definition: %w", err)
	}
	sum := sha256.Sum256(data)
	d.sha256 = hex.EncodeToString(sum[:])
	if d.Prompt == "" {
		d.Prompt = PromptStdin
	}
	if d.Task == "" {
		d.Task = "{task}"
	}
	if d.InstallNetwork == "" {
		d.InstallNetwork = "bridge"
	}
	if err := d.validate(); err != nil {
		return d, fmt.Errorf("read agent definition: %w", err)
	}
	return d, nil
}

func (d Definition) validate() error {
	switch {
	case strings.TrimSpace(d.Command) == "":
		return errors.New("command: set the command that starts the agent")
	case !slices.Contains([]string{PromptStdin, PromptFile, PromptArgument}, d.Prompt):
		return fmt.Errorf("prompt: %.40q is not one of stdin, file, argument", d.Prompt)
	case d.Dialect != "" && dialect.ByName(d.Dialect) == nil:
		return fmt.Errorf("dialect: %.40q is not one of %s", d.Dialect, strings.Join(dialect.Names, ", "))
	case len(d.Install) > maxInstall:
		return fmt.Errorf("install: the script has more than %d bytes; put it into folder, and copy from there in command", maxInstall)
	case d.InstallNetwork != "bridge" && d.InstallNetwork != "none":
		return fmt.Errorf("install_network: %.40q is not one of bridge, none", d.InstallNetwork)
	case d.ServerTools != "" && d.ServerTools != "allow":
		return fmt.Errorf("server_tools: %.40q is not allow", d.ServerTools)
	}
	for name := range d.Env {
		if !variableName.MatchString(name) {
			return fmt.Errorf("env: %.80q is not the name of a variable", name)
		}
	}
	for name := range d.Files {
		if name == "" || strings.ContainsAny(name, "\x00\n") || slices.Contains(strings.Split(name, "/"), "..") {
			return fmt.Errorf("files: %.80q is not the name of a file", name)
		}
	}
	return nil
}

// script returns the command that writes the files, sets the variables, and starts the
// agent.
func (d Definition) script(prompt, token, modelName string) string {
	var b strings.Builder
	b.WriteString(`MINI_STATE=$(mktemp -d "${TMPDIR:-/tmp}/mini-agent-XXXXXX") || exit 125
export MINI_STATE MINI_URL="http://$MINI_BRIDGE" MINI_PROMPT_FILE="$MINI_STATE/prompt"
trap 'rm -rf "$MINI_STATE"' EXIT
unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
`)
	fmt.Fprintf(&b, "export MINI_TOKEN=%s MINI_MODEL=%s\nprintf %%s %s >\"$MINI_PROMPT_FILE\"\n", quote(token), quote(modelName), quote(prompt))
	if d.Prompt == PromptArgument {
		b.WriteString("MINI_PROMPT=$(cat \"$MINI_PROMPT_FILE\")\n")
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, expand(d.Env[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		target := quote(name)
		if !path.IsAbs(name) {
			target = `"$MINI_STATE"/` + target
		}
		fmt.Fprintf(&b, "mkdir -p \"$(dirname %s)\" && printf %%s %s >%s\n", target, expand(d.Files[name]), target)
	}
	input := "/dev/null"
	if d.Prompt == PromptStdin {
		input = `"$MINI_PROMPT_FILE"`
	}
	fmt.Fprintf(&b, "(\n%s\n) <%s\n", strings.TrimRight(d.Command, "\n"), input)
	return b.String()
}

// quote returns a shell word.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// variable matches what expand replaces.
var variable = lazyregexp.New(`\$(MINI_[A-Z_]+)|\$\{(MINI_[A-Z_]+)\}`)

// expand returns a shell word in which mini's variables are replaced.
func expand(s string) string { return variable.ReplaceAllString(quote(s), `'"$$$1$2"'`) }

// prompt returns the text of the task.
func (d Definition) prompt(task, id, dir string) string {
	return strings.NewReplacer("{task}", task, "{id}", id, "{dir}", dir).Replace(d.Task)
}
