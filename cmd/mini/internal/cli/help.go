package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is how wide help is, in columns.
const helpWidth = 80

// groupsKey is the annotation of a command that puts its flags into groups:
// "rows: subset split; model: model". Flags joined by + share a line, with the
// words of the first. A name that is no flag of the command is passed over, and
// a flag in no group comes at the end, so that none is lost.
const groupsKey = "mini-flag-groups"

// commandGroups are the commands as mini --help lists them.
var commandGroups = []group{
	{"run", []string{"bench", "ctl", "replay", "eval", "grade"}},
	{"look", []string{"report", "inspect", "notes", "shell", "datasets"}},
	{"trajectories", []string{"import", "export", "trajectories"}},
	{"set up", []string{"config", "policy", "skills", "doctor", "images", "clean", "fake-model", "completion"}},
}

// group is one part of a list, and its name in the margin.
type group struct {
	name    string
	members []string
}

// setHelp makes root and all commands below it print help of mini's own form.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		writeHelp(cmd.OutOrStdout(), cmd)
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		writeHelp(cmd.OutOrStderr(), cmd)
		return nil
	})
	root.InitDefaultHelpFlag()
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command", Hidden: true,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q; see mini --help", strings.Join(args, " "))
			}
			return found.Help()
		},
	})
}

// writeHelp prints what a command does, examples, and its commands and flags.
func writeHelp(w io.Writer, cmd *cobra.Command) {
	var b strings.Builder
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimSpace(about))
	if strings.Contains(about, "\n") {
		b.WriteByte('\n')
	}
	commands, flags := commandRows(cmd), flagRows(cmd)
	use := cmd.UseLine()
	if len(flags) == 0 {
		use = strings.TrimSuffix(use, " [flags]")
	}
	fmt.Fprintf(&b, "Usage: %s\n", use)
	if cmd.Example != "" {
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	writeRows(&b, commands)
	writeRows(&b, flags)
	if !cmd.HasParent() {
		b.WriteString("\nmini COMMAND --help says more of a command.\n")
	}
	_, _ = io.WriteString(w, b.String()) // nobody is left to tell
}

// row is one line of a list: what stands in the margin, the name, the words.
type row struct{ margin, name, text string }

// widestName is how wide the second column becomes at most. The words of a row
// with a longer name follow it where it ends.
const widestName = 32

// writeRows prints rows in three columns, after an empty line.
func writeRows(b *strings.Builder, rows []row) {
	if len(rows) == 0 {
		return
	}
	b.WriteByte('\n')
	margin, name := 0, 0
	for _, r := range rows {
		margin = max(margin, len(r.margin))
		if len(r.name) <= widestName {
			name = max(name, len(r.name))
		}
	}
	if margin > 0 {
		margin += 2
	}
	indent := margin + name + 2
	for _, r := range rows {
		text := r.text
		if len(r.name) <= name {
			text = ansi.Wordwrap(text, helpWidth-indent, "")
		}
		text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", indent))
		line := fmt.Sprintf("%-*s%-*s  %s", margin, r.margin, name, r.name, text)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// commandRows are the commands below cmd, in their groups at the root.
func commandRows(cmd *cobra.Command) []row {
	var rows []row
	listed := map[string]bool{}
	add := func(margin string, c *cobra.Command) {
		if c != nil && c.IsAvailableCommand() && !listed[c.Name()] {
			listed[c.Name()] = true
			rows = append(rows, row{margin, c.Name(), c.Short})
		}
	}
	if !cmd.HasParent() {
		for _, g := range commandGroups {
			margin := g.name
			for _, name := range g.members {
				n := len(rows)
				if add(margin, subcommand(cmd, name)); len(rows) > n {
					margin = ""
				}
			}
		}
	}
	for _, c := range cmd.Commands() {
		add("", c)
	}
	return rows
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	if i < 0 {
		return nil
	}
	return cmd.Commands()[i]
}

// flagRows are the flags of a command that are not hidden, in their groups.
// --help is not among them: who reads this has found it.
func flagRows(cmd *cobra.Command) []row {
	var rows []row
	listed := map[string]bool{"help": true, "version": cmd.HasParent()}
	for _, g := range flagGroups(cmd) {
		margin := g.name
		for _, joined := range g.members {
			r := row{margin: margin}
			for name := range strings.SplitSeq(joined, "+") {
				f := cmd.Flags().Lookup(name)
				if f == nil || f.Hidden || listed[name] {
					continue
				}
				listed[name] = true
				r = r.with(f)
			}
			if r.name != "" {
				rows, margin = append(rows, r), ""
			}
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !listed[f.Name] {
			rows = append(rows, row{}.with(f))
		}
	})
	return rows
}

// with adds a flag to a row; only the first of a row says what it does.
func (r row) with(f *pflag.Flag) row {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	switch {
	case value != "" && f.NoOptDefVal != "" && f.Value.Type() == "string":
		name += "[=" + value + "]"
	case value != "":
		name += " " + value
	}
	if r.name != "" {
		r.name += ", " + name
		return r
	}
	r.name, r.text = "    "+name, usage
	if f.Shorthand != "" {
		r.name = "-" + f.Shorthand + ", " + name
	}
	return r
}

// flagGroups reads the annotation of a command.
func flagGroups(cmd *cobra.Command) []group {
	var groups []group
	for part := range strings.SplitSeq(cmd.Annotations[groupsKey], ";") {
		if name, members, ok := strings.Cut(part, ":"); ok {
			groups = append(groups, group{strings.TrimSpace(name), strings.Fields(members)})
		}
	}
	return groups
}
