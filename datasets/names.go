package datasets

// Names of files and directories in the folder of a run, next to the folders of its
// instances. Code that writes them uses these constants, so that CheckID can reject an
// instance id with such a name.
const (
	RunFile     = "run.json"
	ConfigFile  = "config.yaml"
	PredsFile   = "preds.json"
	ResultsFile = "results.json"
	EventsFile  = "events.jsonl"
	ControlFile = "control.json"
	ReplayFile  = "replay.json"
	LabelsFile  = "labels.json"
	RewardsFile = "rewards.jsonl"
	BuildsDir   = "builds" // logs of the images that were built
	LogsDir     = "logs"
	VerdictsDir = "verdicts"
)

// runFiles lists all of them.
var runFiles = []string{RunFile, ConfigFile, PredsFile, ResultsFile, EventsFile, ControlFile, ReplayFile, LabelsFile, RewardsFile, BuildsDir, LogsDir, VerdictsDir}
