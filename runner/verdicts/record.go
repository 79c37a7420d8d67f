package verdicts

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/tampering"
	"github.com/minibench/mini/trajectories"
)

// Format is the format version of records.
const Format = "mini-verdict-1"

// Record is the verdict on one patch, with its inputs and every test run made
// for it. It is stored in a file beside the official log tree.
type Record struct {
	Format   string `json:"format"`
	Instance string `json:"instance_id"`
	Model    string `json:"model_name_or_path"`
	RunID    string `json:"run_id"`
	// Repetition is the number of the repetition (pass@k), or 0 for the first.
	Repetition int   `json:"sample,omitempty"`
	Class      Class `json:"class"`
	// Resolution is RESOLVED_FULL, RESOLVED_PARTIAL or RESOLVED_NO. It is empty
	// if no log was graded.
	Resolution string `json:"resolution,omitempty"`
	// Reason is a sentence that explains any class but Resolved. Hint tells the
	// user what to do about it.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// FailureReason is the infrastructure problem that the log mentions, as in
	// the official summary (see grade.ClassifyFailure). It never changes the
	// class.
	FailureReason string     `json:"failure_reason,omitempty"`
	FailureTier   grade.Tier `json:"failure_tier,omitempty"`
	// Flags lists suspicious parts of the patch or its log. Flags never change
	// the class.
	Flags []tampering.Finding `json:"flags,omitempty"`
	// ResolvedWithoutSuspect reports whether the patch resolves the instance
	// without its flagged files. It is nil if no file is flagged or the run
	// without them had an infrastructure failure.
	ResolvedWithoutSuspect *bool `json:"resolved_without_suspect,omitempty"`
	// Gold and Noop are the baseline of this machine, if known: the class of
	// the row's own solution, and the class without a patch.
	Gold Class `json:"gold,omitempty"`
	Noop Class `json:"noop,omitempty"`

	// Kind is KindHarbor for a task in Harbor's form, otherwise "".
	Kind string `json:"kind,omitempty"`
	// Rewards are the numbers that the tests of a Harbor task have written, by name; nil for
	// other rows. The class is Resolved if Reward is at least 1. Steps are the verdicts on
	// the steps of the task, if it has several.
	// SharedRewards are those in the container of the agent, if Rewards are those of a
	// pristine one.
	Rewards       map[string]float64 `json:"rewards,omitempty"`
	SharedRewards map[string]float64 `json:"shared_rewards,omitempty"`
	Steps         []StepVerdict      `json:"steps,omitempty"`

	Basis Basis     `json:"basis"`
	Runs  []TestRun `json:"runs,omitempty"`
	// ReusedFrom is the source of a reused verdict: the path of another record
	// or of an entry in the shared cache.
	ReusedFrom string `json:"reused_from,omitempty"`
	// Seconds is the duration of the run that VerdictRun returns.
	Seconds float64 `json:"duration_seconds,omitempty"`
	// Previous lists the verdicts before each regrading, oldest first.
	Previous []PreviousVerdict `json:"regraded,omitempty"`
	// Signature is the HMAC-SHA256 of the rest of the record, in hex, with the
	// key of the user who made the record. An evaluation does not reuse a record
	// without its user's signature.
	Signature string `json:"seal,omitempty"`
}

// Basis holds the inputs of an evaluation. If an input changes, the patch is
// evaluated again. Editions and Machine are informational: they do not affect
// reuse.
type Basis struct {
	// Key is the result of CacheKey.
	Key         string                `json:"key,omitempty"`
	Editions    []datasets.SourceInfo `json:"dataset,omitempty"` // source of the row
	RowSHA256   string                `json:"row_sha256,omitempty"`
	PatchSHA256 string                `json:"patch_sha256,omitempty"`
	PatchBytes  int                   `json:"patch_bytes"`
	// Image is the image name. ImageID, ImageDigest and ImageArch identify the
	// image that the name referred to.
	Image           string  `json:"image,omitempty"`
	ImageID         string  `json:"image_id,omitempty"`
	ImageDigest     string  `json:"image_digest,omitempty"`
	ImageArch       string  `json:"image_arch,omitempty"`
	ScriptSHA256    string  `json:"script_sha256,omitempty"`
	ScriptGenerated bool    `json:"script_generated,omitempty"` // true if the row has no script
	Parser          string  `json:"parser,omitempty"`
	ParserRelease   string  `json:"parser_release,omitempty"`
	EvalType        string  `json:"eval_type,omitempty"`
	MiniVersion     string  `json:"mini_version,omitempty"`
	Timeout         float64 `json:"timeout_seconds,omitempty"`
	Network         string  `json:"network,omitempty"`
	Profile         string  `json:"profile,omitempty"`
	LogLimit        int     `json:"log_limit,omitempty"` // bytes
	Machine         Machine `json:"machine"`
}

// Machine describes the machine of the sandbox. Arch and Kernel are read inside
// the sandbox.
type Machine struct {
	CPUs   int    `json:"cpus"` // of the machine that runs mini
	Arch   string `json:"arch,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	Engine string `json:"engine,omitempty"`
}

// Purpose is the reason for a test run.
type Purpose string

// The purposes of test runs.
const (
	ForVerdict     Purpose = "verdict"         // the run that decides the official verdict
	ForRerun       Purpose = "rerun"           // a rerun after a failure
	WithoutSuspect Purpose = "without_suspect" // a run without the flagged files
)

// TestRun is one run of an instance's tests on a patch, in a fresh sandbox.
type TestRun struct {
	Purpose Purpose `json:"purpose"`
	Class   Class   `json:"class"`
	// Status is the status of the env.Error that caused the class infrastructure,
	// or evaluate.LogUnwritable.
	Status     env.Status `json:"status,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Hint       string     `json:"hint,omitempty"`
	Resolution string     `json:"resolution,omitempty"`
	// FailureReason and FailureTier describe the infrastructure problem that
	// the run's files mention (see grade.ClassifyFailure).
	FailureReason string     `json:"failure_reason,omitempty"`
	FailureTier   grade.Tier `json:"failure_tier,omitempty"`
	// Passed and Failed count the tests named in the row.
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	// ExitCode is the exit code of the tests according to the log; nil if the
	// log has none.
	ExitCode *int64    `json:"exit_code"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"duration_seconds"`
	// LogBytes is the size of the script's output. LogTruncated reports whether
	// the log lacks the middle of the output.
	LogBytes     int64 `json:"log_bytes"`
	LogTruncated bool  `json:"log_truncated,omitempty"`
	// AppliedWith is the command that applied the patch, such as "git apply
	// --verbose".
	AppliedWith string `json:"applied_with,omitempty"`
	OOMKilled   int    `json:"oom_killed,omitempty"` // number of killed processes
	// Dir is the slash-separated path of the run's files, relative to the run
	// folder.
	Dir string `json:"dir,omitempty"`
	// PatchSHA256 and PatchBytes describe the patch without its flagged files, and
	// Key is its cache key. They are empty for runs of the whole patch.
	PatchSHA256 string `json:"patch_sha256,omitempty"`
	PatchBytes  int    `json:"patch_bytes,omitempty"`
	Key         string `json:"key,omitempty"`
	// Permanent reports whether a retry would fail in the same way.
	Permanent bool `json:"-"`
	// Flags lists suspicious parts of this run's log.
	Flags []tampering.Finding `json:"flags,omitempty"`
}

// Clone returns a copy of r with its own slice of runs.
func (r Record) Clone() Record {
	r.Runs = slices.Clone(r.Runs)
	return r
}

// VerdictRun returns the run that the official files describe: the last run
// with the purpose ForVerdict. It returns nil if there is none.
func (r Record) VerdictRun() *TestRun {
	for i := len(r.Runs) - 1; i >= 0; i-- {
		if r.Runs[i].Purpose == ForVerdict {
			return &r.Runs[i]
		}
	}
	return nil
}

// VerdictClass returns the class that the official files show. It differs from
// Class if the verdict is unstable.
func (r Record) VerdictClass() Class {
	if run := r.VerdictRun(); run != nil {
		return run.Class
	}
	return r.Class
}

// VerdictDir returns the folder of the official files, relative to the run
// folder.
func (r Record) VerdictDir() string {
	if run := r.VerdictRun(); run != nil {
		return run.Dir
	}
	return ""
}

// DeriveClass copies the class and its details from the verdict run. The class is
// Unstable if a rerun had another final class.
func (r *Record) DeriveClass() {
	run := r.VerdictRun()
	if run == nil {
		return
	}
	r.Class, r.Resolution, r.Reason, r.Hint = run.Class, run.Resolution, run.Reason, run.Hint
	r.FailureReason, r.FailureTier, r.Seconds = run.FailureReason, run.FailureTier, run.Seconds
	for _, rerun := range r.Runs {
		if rerun.Purpose == ForRerun && rerun.Class.IsFinal() && rerun.Class != run.Class {
			r.Class, r.Reason = Unstable, fmt.Sprintf("the first run was %s, a rerun was %s", run.Class, rerun.Class)
			return
		}
	}
}

// Matches reports whether the verdict is about this prediction. It is false for a
// prediction with another patch for the same instance.
func (r Record) Matches(p trajectories.Prediction) bool {
	return r.Instance == p.InstanceID && r.Model == p.Model && r.Basis.PatchBytes == len(p.Patch) &&
		(p.Patch == "" || r.Basis.PatchSHA256 == PatchHash([]byte(p.Patch)))
}

// matchesPath reports whether the record's instance, model and run id agree
// with its path.
func (r Record) matchesPath(path string) bool {
	model := filepath.Dir(path)
	return r.Instance+".json" == filepath.Base(path) && strings.ReplaceAll(r.Model, "/", "__") == filepath.Base(model) &&
		r.RunID == filepath.Base(filepath.Dir(model))
}

// FlagNames returns the distinct names of the flags.
func (r Record) FlagNames() []string {
	var names []string
	for _, f := range r.Flags {
		if name := string(f.Flag); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// IsQuarantined reports whether this machine cannot evaluate the instance: its
// gold patch fails here, or it passes without a patch.
func (r Record) IsQuarantined() bool {
	return r.Gold != "" && r.Gold != Resolved || r.Noop == Resolved
}

// PreviousVerdict is a verdict from before a regrading, with those inputs that
// a regrading can change.
type PreviousVerdict struct {
	Time          time.Time `json:"time"` // of the regrading
	Class         Class     `json:"class"`
	Resolution    string    `json:"resolution,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	RowSHA256     string    `json:"row_sha256,omitempty"`
	Parser        string    `json:"parser,omitempty"`
	ParserRelease string    `json:"parser_release,omitempty"`
	EvalType      string    `json:"eval_type,omitempty"`
}

// Class is the outcome of an evaluation. The values are stored in record files.
type Class string

// The classes. The comment of package evaluate defines when each applies.
const (
	Resolved       Class = "resolved"
	Unresolved     Class = "unresolved"
	Unstable       Class = "unstable"       // runs of the same patch had different outcomes
	Empty          Class = "empty"          // the prediction has no patch
	ApplyFailed    Class = "apply_failed"   // the patch does not apply
	TimedOut       Class = "timed_out"      // the evaluation script exceeded its timeout
	Infrastructure Class = "infrastructure" // no verdict: the machine or the sandbox failed
	Error          Class = "error"          // no verdict: the official log parser crashes
)

// Classes returns all classes, in the order in which tables list them.
func Classes() []Class {
	return []Class{Resolved, Unresolved, Unstable, Empty, ApplyFailed, TimedOut, Infrastructure, Error}
}

// IsVerdict reports whether the class says something about the patch.
func (c Class) IsVerdict() bool { return c != "" && c != Infrastructure && c != Error }

// IsFinal reports whether the class is a result. It is false for infrastructure
// failures, after which the patch is evaluated again.
func (c Class) IsFinal() bool { return c != "" && c != Infrastructure }

// IsFailure reports whether evaluate.Config.RerunFailed applies to the class. It is
// false for ApplyFailed, because a rerun would have the same result.
func (c Class) IsFailure() bool { return c == Unresolved || c == TimedOut || c == Error }

// KindHarbor is the kind of a record about a task in Harbor's form.
const KindHarbor = "harbor"

// StepVerdict is the verdict on one step of a task.
type StepVerdict struct {
	Name    string             `json:"name"`
	Class   Class              `json:"class"`
	Rewards map[string]float64 `json:"rewards,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Seconds float64            `json:"duration_seconds"`
}

// Reward returns the reward that counts: the one named "reward", or else the first by name.
// ok is false if there are no rewards.
func Reward(rewards map[string]float64) (n float64, ok bool) {
	name := "reward"
	if _, ok := rewards[name]; !ok && len(rewards) > 0 {
		name = slices.Min(slices.Collect(maps.Keys(rewards)))
	}
	n, ok = rewards[name]
	return n, ok
}

// IsBinary reports whether the reward that counts is 0 or 1, or there is none. Only then
// resolved or not says it all.
func IsBinary(rewards map[string]float64) bool {
	n, _ := Reward(rewards)
	return n == 0 || n == 1
}
