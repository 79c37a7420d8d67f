package cli

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/usage"
)

// commandGroups lists the headings of mini --help with their commands.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Run agents", []string{"bench", "ctl", "replay", "serve"}},
	{"Evaluate patches", []string{"eval", "grade"}},
	{"Inspect results", []string{"report", "runs", "compare", "inspect", "view", "label", "shell"}},
	{"Convert trajectories", []string{"import", "export"}},
	{"Manage datasets and images", []string{"datasets", "images"}},
	{"Configure mini", []string{"config", "policy", "skills", "notes", "completion"}},
	{"Check and maintain this machine", []string{"doctor", "clean", "kubernetes"}},
}

// Topic is a text that mini help prints besides the help of commands.
type Topic struct{ Name, Short string }

// Topics lists the help topics.
var Topics = []Topic{
	{"configuration", "Where settings come from, and which one wins"},
	{"environments", "The sandboxes that commands run in"},
	{"outcomes", "How attempts end, which of them count, and retries"},
	{"exit-codes", "The exit codes of all commands"},
}

//go:embed topics/*.txt
var topicFiles embed.FS

// Text returns the text of the topic.
func (t Topic) Text() string {
	text, err := topicFiles.ReadFile("topics/" + t.Name + ".txt")
	if err != nil {
		panic(err) // a topic without a file; a test reads all of them
	}
	return string(text)
}

// usageTemplate is cobra's default template without aliases. It has the examples
// after the flags and, for the root, the help topics.
const usageTemplate = `Usage:
  {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{- $cmds := .Commands}}{{if .HasAvailableSubCommands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}:{{range $cmds}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}

{{flagUsages .}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Run "{{.CommandPath}} COMMAND --help" for the help of a command.{{end}}
{{- if not .HasParent}}

Help topics:%s{{end}}
`

// addTemplateFunc adds a function to cobra's, which all commands of a process share.
var addTemplateFunc = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagUsages", flagUsages) })

// setHelp sets the usage template, the groups and the help command. It makes help
// list flags in the order of their definition.
func setHelp(root *cobra.Command) {
	var list strings.Builder
	for _, t := range Topics {
		fmt.Fprintf(&list, "\n  %-19s %s", "help "+t.Name, t.Short)
	}
	addTemplateFunc()
	root.SetUsageTemplate(fmt.Sprintf(usageTemplate, &list))
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.title
			}
		}
	}
	cmdutil.WalkCommands(root, func(cmd *cobra.Command) { cmd.Flags().SortFlags = false })
	root.SetHelpCommand(newHelp())
}

// newHelp returns the command mini help.
func newHelp() *cobra.Command {
	cmd := &cobra.Command{
		Use: "help [COMMAND | TOPIC]", Short: "Show the help of a command or a topic", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if i := slices.IndexFunc(Topics, func(t Topic) bool { return t.Name == args[0] }); i >= 0 {
					_, err := io.WriteString(cmd.OutOrStdout(), Topics[i].Text())
					return err
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usage.Errorf("unknown command or topic %q; see mini --help", strings.Join(args, " "))
			}
			return found.Help()
		},
	}
	for _, t := range Topics {
		cmd.ValidArgs = append(cmd.ValidArgs, cobra.CompletionWithDesc(t.Name, t.Short))
	}
	return cmd
}
