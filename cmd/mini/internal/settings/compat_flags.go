package settings

import (
	"github.com/spf13/pflag"
)

// compatFlagAnswers maps flags of mini-swe-agent that mini rejects to advice.
var compatFlagAnswers = map[string]string{
	"visual": "leave it out; a session is shown so by itself, and --plain shows lines only",
}

// HarnessFlagAnswers maps flags of swebench.harness.run_evaluation and sb-cli submit to advice for
// mini eval.
var HarnessFlagAnswers = map[string]string{
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

// addCompatFlags adds hidden flags of mini-swe-agent.
func addCompatFlags(f *pflag.FlagSet) {
	f.String("agent-class", "", "")
	f.Lookup("agent-class").Hidden = true
}

// AddVisualFlag adds -v. It means --version if it is the only flag, else --visual of
// mini-swe-agent.
func AddVisualFlag(f *pflag.FlagSet) {
	f.BoolP("visual", "v", false, "")
	f.Lookup("visual").Hidden = true
}

// IsVersionOnly reports whether -v is the only flag of the command line.
func IsVersionOnly(f *pflag.FlagSet) bool { return f.Changed("visual") && f.NFlag() == 1 }
