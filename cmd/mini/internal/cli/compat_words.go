package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// peerFlagAnswers are flags of mini-swe-agent that mini has no use for.
var peerFlagAnswers = map[string]string{
	"agent-class": "mini has one agent; leave it out",
	"visual":      "leave it out; a session is shown so by itself, and --plain shows lines only",
}

// harnessFlagAnswers are flags of swebench.harness.run_evaluation and of sb-cli
// submit, and what mini eval has instead of them.
var harnessFlagAnswers = map[string]string{
	"dataset_name":        "use --subset SET",
	"predictions_path":    "use -p PREDS",
	"instance_ids":        "use -i ID, once for each",
	"max_workers":         "use -w N",
	"run_id":              "use --run-id ID",
	"report_dir":          "use -o FOLDER, where the official summary is too",
	"output_dir":          "use -o FOLDER, where the official summary is too",
	"rewrite_reports":     "use mini grade FOLDER, which judges the saved logs again",
	"overwrite":           "leave it out; what has a verdict that holds is not run again, and -o names another folder",
	"namespace":           "leave it out; rows name their images",
	"instance_image_tag":  "leave it out; rows name their images",
	"env_image_tag":       "leave it out; rows name their images",
	"force_rebuild":       "leave it out; mini builds no images",
	"cache_level":         "leave it out; images stay, -c run.image_budget=80GB bounds them, mini images prune removes them",
	"clean":               "leave it out; images stay, -c run.image_budget=80GB bounds them, mini images prune removes them",
	"open_file_limit":     "leave it out; mini doctor says whether there are enough",
	"modal":               "mini runs on container engines; leave it out",
	"gen_report":          "leave it out; a report is always written",
	"verify_submission":   "leave it out; predictions are checked before anything runs",
	"wait_for_evaluation": "leave it out; mini waits",
}

// peerFlags registers what mini-swe-agent's users may type.
func peerFlags(f *pflag.FlagSet) {
	f.String("agent-class", "", "")
	f.Lookup("agent-class").Hidden = true
}

// visualFlag takes -v, which stands for --version alone and is --visual of
// mini-swe-agent beside other flags.
func visualFlag(f *pflag.FlagSet) {
	f.BoolP("visual", "v", false, "")
	f.Lookup("visual").Hidden = true
}

// onlyVersion says that mini was called as `mini -v`.
func onlyVersion(f *pflag.FlagSet) bool { return f.Changed("visual") && f.NFlag() == 1 }

// newPeerCommands answer the commands of mini-extra.
func newPeerCommands() []*cobra.Command {
	return []*cobra.Command{
		answered("swebench-single", "use mini bench --subset SET -i ID; it works on that instance alone"),
		answered("programbench", "mini has no ProgramBench"),
		answered("extra", "the commands of mini-extra are mini's own: mini bench, mini report, mini config", "mini-extra", "e"),
	}
}

// answered is a command that only says what to use instead.
func answered(name, answer string, aliases ...string) *cobra.Command {
	return &cobra.Command{
		Use: name, Aliases: aliases, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return usagef("%s: %s", cmd.CommandPath(), answer) },
	}
}
