package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a heading in the help of a command, with the names of its flags.
type flagGroup struct{ title, flags string }

// runGroups are the groups of flags of commands about batches and evaluations.
var runGroups = []flagGroup{
	{"Choose instances", "subset split instance filter slice shuffle seed predictions skip-unknown trust-verdicts"},
	{"Agent and model", "config agent model local profile model-class replies tokens vary"},
	{"Sandbox", "environment-class network task-env empty-folder keep image-budget allow-destructive kubernetes"},
	{"Limits", "workers attempts cost-limit total-cost-limit total-calls max-consecutive-provider-failures no-autosubmit"},
	{"Evaluate", "eval eval-workers timeout eval-network run-id rerun-failed cache"},
	{"Continue", "resume-attempts force redo-existing"},
	{"Output", "output dry-run progress json events help"},
}

// flagGroups are the groups of flags of commands with many flags. The help of other commands
// has one list.
var flagGroups = map[string][]flagGroup{
	"mini bench": runGroups, "mini eval": runGroups, "mini doctor": runGroups,
	"mini serve": slices.Concat([]flagGroup{{"Serve", "listen tls-cert tls-key plain-http token-file tasks queue per-client"}}, runGroups),
	"mini export": {
		{"Choose attempts", "select resolved verdict class repo model exclude-flagged flags"},
		{"Bounds", "max-tokens tokenizer max-steps min-steps max-format-errors max-per-instance min-per-instance dedupe"},
		{"Safety", "secrets allow-test-split"},
		{"Rows", "format reasoning format-errors tool-arguments completion segments split split-by seed"},
		{"Output", "output parquet shard-rows shard-size force workers json help"},
	},
}

// flagUsages returns the flags of a command with their headings.
func flagUsages(cmd *cobra.Command) string {
	const width = 100
	left := pflag.NewFlagSet("", pflag.ContinueOnError)
	left.SortFlags = false
	left.AddFlagSet(cmd.LocalFlags())
	var b strings.Builder
	add := func(title string, flags *pflag.FlagSet) {
		if flags.HasAvailableFlags() {
			b.WriteString("\n" + title + ":\n" + flags.FlagUsagesWrapped(width))
		}
	}
	for _, group := range flagGroups[cmd.CommandPath()] {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.SortFlags = false
		for name := range strings.FieldsSeq(group.flags) {
			if f := left.Lookup(name); f != nil {
				flags.AddFlag(f)
			}
		}
		add(group.title, flags)
	}
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	rest.SortFlags = false
	left.VisitAll(func(f *pflag.Flag) {
		for _, group := range flagGroups[cmd.CommandPath()] {
			if strings.Contains(" "+group.flags+" ", " "+f.Name+" ") {
				return
			}
		}
		rest.AddFlag(f)
	})
	add("Flags", rest)
	return strings.Trim(b.String(), "\n")
}
