package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// helpWidth is how wide lines of text are, in columns.
const helpWidth = 80

// commandGroups are the commands as mini --help lists them.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Run agents", []string{"bench", "ctl", "replay", "eval", "grade"}},
	{"Read results", []string{"report", "inspect", "notes", "shell", "datasets"}},
	{"Trajectories", []string{"import", "export", "trajectories"}},
	{"Setup", []string{"config", "policy", "skills", "doctor", "images", "clean", "fake-model", "completion"}},
}

// usageTemplate is cobra's with the examples at the end, and without aliases.
const usageTemplate = `Usage:
  {{if .Runnable}}{{.UseLine}}{{else}}{{.CommandPath}} COMMAND{{end}}
{{- $cmds := .Commands}}{{if .HasAvailableSubCommands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}:{{range $cmds}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{- if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more of a command.{{end}}
`

// setHelp puts the commands into groups, and gives root and all commands below it
// their form of help: flags stand in the order in which the code has them.
func setHelp(root *cobra.Command) {
	root.SetUsageTemplate(usageTemplate)
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.title
			}
		}
	}
	walk(root, func(cmd *cobra.Command) { cmd.Flags().SortFlags = false })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("unknown command %q; see mini --help", args)
			}
			return found.Help()
		},
	})
}
