package datasets

// The names of what mini puts into the folder of a run beside the folders of its
// instances, which are named by their ids. Those who write the files take their
// names from here, so that no id can be one of them.
const (
	RunFile     = "run.json"
	ConfigFile  = "config.yaml"
	PredsFile   = "preds.json"
	ResultsFile = "results.json"
	EventsFile  = "events.jsonl"
	ControlFile = "control.json"
	ReplayFile  = "replay.json"
	LogsDir     = "logs"
	VerdictsDir = "verdicts"
)

// reserved are all of them.
var reserved = []string{RunFile, ConfigFile, PredsFile, ResultsFile, EventsFile, ControlFile, ReplayFile, LogsDir, VerdictsDir}
