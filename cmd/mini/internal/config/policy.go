package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/policy/saved"
	"github.com/minibench/mini/agent/policy/shell"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner/setup"
)

// NewPolicy returns the command mini policy.
func NewPolicy(a *app.App) *cobra.Command {
	return cmdutil.WithSubcommands(&cobra.Command{
		Use:     "policy",
		Short:   "Check the policy for commands",
		Example: "  mini policy check 'rm -rf build'",
	}, newPolicyCheck(a), newPolicyRules(a))
}

// newPolicyRules returns the command mini policy rules.
func newPolicyRules(a *app.App) *cobra.Command {
	var dir string
	var remove int
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the commands that you always allow in a folder",
		Long: `Lists the commands that run in a folder without a question, because you have
answered a question of mini with "always" for the folder. They are stored in
mini's state folder.`,
		Example: `  mini policy rules
  mini policy rules --remove 2`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := saved.Open(allowedDir(), dir)
			if err != nil {
				return usage.Wrap(err)
			}
			if cmd.Flags().Changed("remove") {
				command, err := store.Remove(remove)
				if err != nil {
					return usage.Wrap(err)
				}
				return a.PrintText(fmt.Sprintf("removed: %s ...\n", cmdutil.Sanitize(command)))
			}
			commands, err := store.Commands()
			if err != nil {
				return err
			}
			return a.PrintText(cmdutil.Sanitize(rulesText(store.Folder(), commands)))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "the `DIR` that the commands run in")
	cmd.Flags().IntVar(&remove, "remove", 0, "remove the rule with this `NUMBER`")
	return cmd
}

// rulesText lists the commands that are always allowed in a folder.
func rulesText(folder string, commands []string) string {
	if len(commands) == 0 {
		return fmt.Sprintf("no command is always allowed in %s\n", folder)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "always allowed in %s:\n", folder)
	for i, command := range commands {
		fmt.Fprintf(&b, "  %d  %s ...\n", i+1, command)
	}
	return b.String()
}

// allowedDir is the folder of the commands that the user always allows.
func allowedDir() string { return filepath.Join(userdirs.StateDir(), "mini", "allowed") }

// AllowSaved adds the commands that the user always allows in a folder to a policy, and returns
// their store.
func AllowSaved(p *policy.Policy, folder string) (saved.Store, error) {
	store, err := saved.Open(allowedDir(), folder)
	if err != nil {
		return store, err
	}
	commands, err := store.Commands()
	for _, command := range commands {
		err = errors.Join(err, p.AllowCommand(command))
	}
	return store, err
}

// PolicyOptions are the flags of mini policy check.
type PolicyOptions struct {
	settings.Flags
	bench      bool
	dir        string
	step       int
	cost       float64
	askDecider bool
	json       bool
}

func newPolicyCheck(a *app.App) *cobra.Command {
	o := &PolicyOptions{}
	cmd := &cobra.Command{
		Use:   "check COMMAND",
		Short: "Show which policy rule applies to a command (dry run)",
		Long: `Shows what the policy decides about a command: whether mini runs it, asks the
user or rejects it, the rule that decided, and how mini parsed each part of the
command. It does not run the command. With -, it reads the command from stdin.`,
		Example: `  mini policy check 'find . -name "*.pyc" | xargs rm'
  mini policy check --bench -c mine.yaml 'pip install requests'`,
		Args: cmdutil.ExactlyOne("a command in quotes, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error { return checkPolicy(cmd.Context(), a, o, args[0]) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage.Errorf("%w; put the command in quotes: mini policy check 'ls -la'", err)
	})
	f := cmd.Flags()
	o.AddConfigFlag(f)
	f.String("environment-class", "", "sandbox: docker, local, bubblewrap or kubernetes")
	f.BoolVar(&o.bench, "bench", false, "use the settings of mini bench instead of mini")
	f.StringVar(&o.dir, "dir", "", "working `DIR` of the command (default: the current folder, or /testbed)")
	f.IntVar(&o.step, "step", 1, "number of model calls before the command")
	f.Float64Var(&o.cost, "cost", 0, "cost in `USD` before the command")
	f.BoolVar(&o.askDecider, "ask-decider", false, "also ask the decider, as a run does")
	f.BoolVar(&o.json, "json", false, "print the decision and the parts as JSON")
	return cmd
}

// policyResult is the output of mini policy check with --json.
type policyResult struct {
	Command  string         `json:"command"`
	Dir      string         `json:"dir"`
	Decision agent.Decision `json:"decision"`
	Parts    []shell.Part   `json:"parts"`
}

func checkPolicy(ctx context.Context, a *app.App, o *PolicyOptions, command string) error {
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, baseOf(o.bench))
	if err != nil {
		return err
	}
	if command == "-" {
		data, err := io.ReadAll(io.LimitReader(a.In, env.MaxScript+1))
		if err != nil {
			return fmt.Errorf("read command from stdin: %w", err)
		}
		if len(data) > env.MaxScript {
			return usage.Errorf("the command on stdin is longer than %d MB", env.MaxScript>>20)
		}
		command = string(data)
	}
	if o.dir, err = workspaceOf(cfg, o.dir); err != nil {
		return err
	}
	commandPolicy, err := setup.NewPolicy(cfg, cfg.Environment.Class)
	if err != nil {
		return err
	}
	if commandPolicy != nil && !o.bench && envopen.IsHostClass(cfg.Environment.Class) {
		if _, err := AllowSaved(commandPolicy, o.dir); err != nil && !errors.Is(err, saved.ErrInside) {
			return err
		}
	}
	result := policyResult{Command: command, Dir: o.dir, Decision: agent.Decision{Action: agent.Allow, By: policy.ByDefault}}
	request := agent.ApprovalRequest{Command: command, Dir: o.dir, Step: o.step, Cost: model.Cost(o.cost)}
	if commandPolicy == nil {
		result.Parts = shell.Analyze(command, shell.Workspace{Dir: o.dir})
	} else if result.Decision, result.Parts = commandPolicy.Evaluate(request); o.askDecider {
		if result.Decision, err = commandPolicy.Decide(ctx, request); err != nil {
			return err
		}
	}
	if result.Parts == nil {
		result.Parts = []shell.Part{}
	}
	if o.json {
		return cmdutil.WriteJSON(a.Out, result)
	}
	_, err = io.WriteString(a.Out, cmdutil.Sanitize(result.text()))
	return err
}

// workspaceOf returns the folder in which commands start: dir, or the default of the
// environment.
func workspaceOf(cfg *configs.Resolved, dir string) (string, error) {
	if !envopen.IsHostClass(cfg.Environment.Class) {
		return cmp.Or(dir, cfg.Environment.Dir, "/testbed"), nil
	}
	folder, err := filepath.Abs(cmp.Or(dir, cfg.Environment.Dir, "."))
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	if _, err := os.Stat(folder); err != nil && dir != "" {
		return "", usage.Errorf("--dir %s: no such folder", dir)
	}
	return folder, nil
}

// text formats the result for people: the decision, then one line for each part.
func (c policyResult) text() string {
	var b strings.Builder
	d := c.Decision
	fmt.Fprintf(&b, "%s  by %s\n", d.Action, decider(d))
	if d.Reason != "" {
		fmt.Fprintf(&b, "%s\n", d.Reason)
	}
	for _, previous := range d.Previous {
		fmt.Fprintf(&b, "before: %s  by %s", previous.Action, decider(previous))
		if previous.By == policy.ByDecider && previous.Reason != "" { // why it failed, for users who test a decider
			fmt.Fprintf(&b, ": %s", strings.Join(strings.Fields(previous.Reason), " "))
		}
		b.WriteByte('\n')
	}
	if len(c.Parts) == 0 {
		b.WriteString("\nthe command runs nothing\n")
		return b.String()
	}
	b.WriteString("\nparsed as\n")
	for i, p := range c.Parts {
		const maxParts = 50
		if i == maxParts {
			fmt.Fprintf(&b, "  and %d more\n", len(c.Parts)-maxParts)
			break
		}
		fmt.Fprintf(&b, "  %s\n", strings.Join(strings.Fields(cmp.Or(p.Command(), "a redirection")), " "))
		for _, note := range partNotes(p) {
			fmt.Fprintf(&b, "      %s\n", note)
		}
	}
	return b.String()
}

// decider describes what made a decision: a rule, the default, the decider or a user.
func decider(d agent.Decision) string {
	switch {
	case d.Rule != "":
		return fmt.Sprintf("%s %q", d.By, d.Rule)
	case d.By == policy.ByDefault:
		return "default: no rule applies"
	}
	return d.By
}

// partNotes describes the effects of a part that matter for the policy, or only the
// reason why they are undecided.
func partNotes(p shell.Part) []string {
	var notes []string
	if p.UndecidedReason != "" {
		return []string{p.UndecidedReason}
	}
	for _, f := range []struct {
		has    shell.Tristate
		effect string
	}{{p.Sudo, "uses the rights of another user"}, {p.Network, "uses the network"}, {p.RecursiveDelete, "deletes files recursively"}, {p.System, "changes the machine"}} {
		switch f.has {
		case shell.Yes:
			notes = append(notes, f.effect)
		case shell.Maybe:
			notes = append(notes, "perhaps "+f.effect)
		}
	}
	for _, path := range p.Paths {
		if path.Location != shell.Inside || path.Mode == shell.Writes {
			notes = append(notes, fmt.Sprintf("%s %s (%s)", path.Mode, path.Text, path.Location))
		}
	}
	if len(p.PipesInto) > 0 {
		notes = append(notes, "pipes into "+strings.Join(p.PipesInto, ", "))
	}
	return notes
}
