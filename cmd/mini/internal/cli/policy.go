package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/policy/shell"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

func newPolicyCommand(s Streams) *cobra.Command {
	return group(&cobra.Command{
		Use:     "policy",
		Short:   "Say what the rules for commands make of one",
		Example: "  mini policy check 'rm -rf build'",
	}, newPolicyCheck(s))
}

// policyOptions are the flags of mini policy check.
type policyOptions struct {
	configFlags
	bench bool
	dir   string
	step  int
	cost  float64
	asks  bool
	json  bool
}

func newPolicyCheck(s Streams) *cobra.Command {
	o := &policyOptions{}
	cmd := &cobra.Command{
		Use:   "check COMMAND",
		Short: "Say what becomes of a command, and why; nothing is run",
		Long: `Says what the rules make of a command: whether it runs, is asked about, or does
not run, by which rule, and what each part of it was read as. Nothing is run.
With - the command is read from stdin.`,
		Example: `  mini policy check 'find . -name "*.pyc" | xargs rm'
  mini policy check --bench -c mine.yaml 'pip install requests'`,
		Args: exactlyOne("a command in quotes, or -"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args[0]) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("%w; the command goes in quotes: mini policy check 'ls -la'", err)
	})
	f := cmd.Flags()
	o.configFlag(f)
	f.String("environment-class", "", "sandbox: docker, local or bubblewrap")
	f.BoolVar(&o.bench, "bench", false, "the rules of mini bench, not those of mini")
	f.StringVar(&o.dir, "dir", "", "`DIR` where it would run (default: here, or /testbed)")
	f.IntVar(&o.step, "step", 1, "number of model calls made before")
	f.Float64Var(&o.cost, "cost", 0, "cost before the command in `USD`")
	f.BoolVar(&o.asks, "ask-decider", false, "also ask the decider, as a run would")
	f.BoolVar(&o.json, "json", false, "print the decision and the parts as JSON")
	return cmd
}

// policyWord is what mini policy check prints with --json.
type policyWord struct {
	Command  string         `json:"command"`
	Dir      string         `json:"dir"`
	Decision agent.Decision `json:"decision"`
	Parts    []shell.Part   `json:"parts"`
}

func (o *policyOptions) run(cmd *cobra.Command, s Streams, command string) error {
	kind := "mini"
	if o.bench {
		kind = "swebench"
	}
	cfg, err := o.merge(kind)
	if err != nil {
		return err
	}
	if command == "-" {
		data, err := io.ReadAll(io.LimitReader(s.In, env.MaxScript+1))
		if err != nil {
			return fmt.Errorf("read command: %w", err)
		}
		if len(data) > env.MaxScript {
			return usagef("the command on stdin is longer than %d MB", env.MaxScript>>20)
		}
		command = string(data)
	}
	if o.dir, err = workspaceOf(cfg, o.dir); err != nil {
		return err
	}
	p, err := newPolicy(cfg, cfg.Environment.Class)
	if err != nil {
		return err
	}
	c := policyWord{Command: command, Dir: o.dir, Decision: agent.Decision{Action: agent.Allow, By: policy.ByDefault}}
	proposal := agent.Proposal{Command: command, Dir: o.dir, Step: o.step, Cost: model.Cost(o.cost)}
	if p == nil {
		c.Parts = shell.Read(command, shell.Place{Dir: o.dir})
	} else if c.Decision, c.Parts = p.Judge(proposal); o.asks {
		if c.Decision, err = p.Decide(cmd.Context(), proposal); err != nil {
			return err
		}
	}
	if c.Parts == nil {
		c.Parts = []shell.Part{}
	}
	if o.json {
		return writeJSON(s.Out, c)
	}
	_, err = io.WriteString(s.Out, lines(c.text()))
	return err
}

// workspaceOf is the folder that commands would start in.
func workspaceOf(cfg *configs.Resolved, dir string) (string, error) {
	if !onHost(cfg.Environment.Class) {
		return cmp.Or(dir, cfg.Environment.Dir, "/testbed"), nil
	}
	here, err := filepath.Abs(cmp.Or(dir, cfg.Environment.Dir, "."))
	if err != nil {
		return "", fmt.Errorf("find the folder: %w", err)
	}
	if _, err := os.Stat(here); err != nil && dir != "" {
		return "", usagef("--dir %s: there is no such folder", dir)
	}
	return here, nil
}

// text says it for people: the decision, then a line for each part.
func (c policyWord) text() string {
	var b strings.Builder
	d := c.Decision
	fmt.Fprintf(&b, "%s  by %s\n", d.Action, byWhom(d))
	if d.Reason != "" {
		fmt.Fprintf(&b, "%s\n", d.Reason)
	}
	for _, before := range d.Before {
		fmt.Fprintf(&b, "before: %s  by %s", before.Action, byWhom(before))
		if before.By == policy.ByDecider && before.Reason != "" { // what went wrong: the model is not told, who tries a decider is
			fmt.Fprintf(&b, ": %s", strings.Join(strings.Fields(before.Reason), " "))
		}
		b.WriteByte('\n')
	}
	if len(c.Parts) == 0 {
		b.WriteString("\nit runs nothing\n")
		return b.String()
	}
	b.WriteString("\nread as\n")
	for i, p := range c.Parts {
		const most = 50
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(c.Parts)-most)
			break
		}
		fmt.Fprintf(&b, "  %s\n", strings.Join(strings.Fields(cmp.Or(p.Command(), "a redirection")), " "))
		for _, note := range notesOn(p) {
			fmt.Fprintf(&b, "      %s\n", note)
		}
	}
	return b.String()
}

func byWhom(d agent.Decision) string {
	switch {
	case d.Rule != "":
		return fmt.Sprintf("%s %q", d.By, d.Rule)
	case d.By == policy.ByDefault:
		return "default: no rule fits"
	}
	return d.By
}

// notesOn is what a part does, but for what all of them do.
func notesOn(p shell.Part) []string {
	var notes []string
	if p.Undecided != "" {
		return []string{p.Undecided}
	}
	for _, f := range []struct {
		is   shell.Answer
		what string
	}{{p.Sudo, "uses another user's rights"}, {p.Network, "uses the network"}, {p.RecursiveDelete, "deletes files without naming each"}, {p.System, "changes the machine"}} {
		switch f.is {
		case shell.Yes:
			notes = append(notes, f.what)
		case shell.Maybe:
			notes = append(notes, "perhaps "+f.what)
		}
	}
	for _, path := range p.Paths {
		if path.Where != shell.Inside || path.Mode == shell.Writes {
			notes = append(notes, fmt.Sprintf("%s %s (%s)", path.Mode, path.Text, path.Where))
		}
	}
	if len(p.PipesInto) > 0 {
		notes = append(notes, "pipes into "+strings.Join(p.PipesInto, ", "))
	}
	return notes
}
