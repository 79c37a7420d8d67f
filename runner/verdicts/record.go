package verdicts

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/runner/grade"
	"github.com/minibench/mini/runner/grade/suspect"
	"github.com/minibench/mini/trajectories"
)

// Format is the version of records.
const Format = "mini-verdict-1"

// Record is the verdict on one patch, all that it rests on, and every run that
// was made for it. It is a file of its own, outside of the official tree.
type Record struct {
	Format   string `json:"format"`
	Instance string `json:"instance_id"`
	Model    string `json:"model_name_or_path"`
	RunID    string `json:"run_id"`
	// Sample is that of the task, where it is not the one that counts.
	Sample int   `json:"sample,omitempty"`
	Class  Class `json:"class"`
	// Resolution is FULL, PARTIAL or NO; empty where nothing was judged.
	Resolution string `json:"resolution,omitempty"`
	// Reason says in a sentence why there is no better class, and Hint what can
	// be done about it.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Failure is what the log says of the machine, in the words of the official
	// summary (see grade.Classify). It never changes the class.
	Failure string     `json:"failure_reason,omitempty"`
	Tier    grade.Tier `json:"failure_tier,omitempty"`
	// Flags are what is suspicious about the patch or its log; none of them
	// changes the class.
	Flags []suspect.Finding `json:"flags,omitempty"`
	// ResolvedWithoutSuspect says what becomes of the verdict when the hunks that
	// were flagged are dropped; nil where there are none, or that run failed.
	ResolvedWithoutSuspect *bool `json:"resolved_without_suspect,omitempty"`
	// Gold and Noop are the baseline of this machine for the instance, where it
	// is known: the classes of the row's own solution and of no patch.
	Gold Class `json:"gold,omitempty"`
	Noop Class `json:"noop,omitempty"`

	Basis Basis     `json:"basis"`
	Runs  []Attempt `json:"runs,omitempty"`
	// Reused names where the verdict came from when nothing was run for it: the
	// folder of another record, or the shared cache.
	Reused string `json:"reused_from,omitempty"`
	// Seconds are those of the run that the class is of, or of all of them where
	// they differ.
	Seconds float64 `json:"duration_seconds,omitempty"`
	// Regraded are the verdicts from before the logs were judged again, oldest
	// first.
	Regraded []Regraded `json:"regraded,omitempty"`
	// ForeignLog says that the verdict rests on a log that was made elsewhere: it
	// came with the folder, and was graded without running the tests.
	ForeignLog bool `json:"foreign_log,omitempty"`
	// Seal is the HMAC-SHA256 of the rest of the record, in hex, with the key of
	// the user who made it. A record without the user's seal is not reused.
	Seal string `json:"seal,omitempty"`
}

// Basis is what a verdict rests on. Where any of it differs, but for the
// editions and the machine's kernel and processors, another evaluation is
// needed.
type Basis struct {
	// Key is the hash of all of it: the verdict's name in the cache.
	Key         string             `json:"key,omitempty"`
	Editions    []datasets.Edition `json:"dataset,omitempty"` // that the row is from
	RowSHA256   string             `json:"row_sha256,omitempty"`
	PatchSHA256 string             `json:"patch_sha256,omitempty"`
	PatchBytes  int                `json:"patch_bytes"`
	// Image is the name, ImageID, ImageDigest and ImageArch what it stood for.
	Image           string  `json:"image,omitempty"`
	ImageID         string  `json:"image_id,omitempty"`
	ImageDigest     string  `json:"image_digest,omitempty"`
	ImageArch       string  `json:"image_arch,omitempty"`
	ScriptSHA256    string  `json:"script_sha256,omitempty"`
	ScriptGenerated bool    `json:"script_generated,omitempty"` // the row had none
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

// Machine is where the sandbox was. Arch and the kernel are told from within it.
type Machine struct {
	CPUs   int    `json:"cpus"` // of the machine that mini runs on
	Arch   string `json:"arch,omitempty"`
	Kernel string `json:"kernel,omitempty"`
	Engine string `json:"engine,omitempty"`
}

// Purpose says why a run was made.
type Purpose string

// The purposes of runs.
const (
	ForVerdict     Purpose = "verdict"         // the official one
	ForStability   Purpose = "rerun"           // it had failed, and is run again
	WithoutSuspect Purpose = "without_suspect" // the flagged hunks are dropped
)

// Attempt is one sandbox that was made for a patch.
type Attempt struct {
	Purpose Purpose `json:"purpose"`
	Class   Class   `json:"class"`
	// Status is why the sandbox was lost, of infrastructure.
	Status     env.Status `json:"status,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	Hint       string     `json:"hint,omitempty"`
	Resolution string     `json:"resolution,omitempty"`
	// Failure and Tier are what the files of the run say of the machine.
	Failure string     `json:"failure_reason,omitempty"`
	Tier    grade.Tier `json:"failure_tier,omitempty"`
	// Passed and Failed count the tests that the row names, as the verdict has
	// them.
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	// ExitCode is the one that the log has for the tests; null without one.
	ExitCode *int64    `json:"exit_code"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"duration_seconds"`
	// LogBytes is what the script wrote. LogTruncated says that the middle of it
	// was left out.
	LogBytes     int64 `json:"log_bytes"`
	LogTruncated bool  `json:"log_truncated,omitempty"`
	// Applied is the attempt that applied the patch ("git apply --verbose").
	Applied   string `json:"applied_with,omitempty"`
	OOMKilled int    `json:"oom_killed,omitempty"` // processes
	// Dir is where the run's files are, relative to the folder, with slashes.
	Dir string `json:"dir,omitempty"`
	// PatchSHA256 and PatchBytes are of the patch without its suspect hunks, and
	// Key is its name in the cache; empty for runs of the whole patch.
	PatchSHA256 string `json:"patch_sha256,omitempty"`
	PatchBytes  int    `json:"patch_bytes,omitempty"`
	Key         string `json:"key,omitempty"`
	// Permanent says that another try would meet the same failure.
	Permanent bool `json:"-"`
	// Flags are what is suspicious about this run's log.
	Flags []suspect.Finding `json:"flags,omitempty"`
}

// Clone is a record whose runs can be changed.
func (r Record) Clone() Record {
	r.Runs = slices.Clone(r.Runs)
	return r
}

// Rest is the verdict on the patch without its suspect hunks, which one of the
// runs came to. It is as good as another record.
func (r Record) Rest(key string) (Record, bool) {
	for _, a := range r.Runs {
		if a.Purpose == WithoutSuspect && a.Key == key && a.Class.Final() && a.Dir != "" {
			a.Purpose = ForVerdict
			r.Basis.PatchSHA256, r.Basis.PatchBytes, r.Basis.Key = a.PatchSHA256, a.PatchBytes, key
			a.PatchSHA256, a.PatchBytes, a.Key = "", 0, ""
			r.Runs, r.ResolvedWithoutSuspect = []Attempt{a}, nil
			r.Conclude()
			return r, r.Basis.ComputeKey() == key
		}
	}
	return Record{}, false
}

// VerdictRun is the run that the official files are of: the last that was made
// for the verdict. It is nil where nothing was run.
func (r Record) VerdictRun() *Attempt {
	for i := len(r.Runs) - 1; i >= 0; i-- {
		if r.Runs[i].Purpose == ForVerdict {
			return &r.Runs[i]
		}
	}
	return nil
}

// VerdictClass is the class that the official files are of: an unstable
// verdict's too.
func (r Record) VerdictClass() Class {
	if a := r.VerdictRun(); a != nil {
		return a.Class
	}
	return r.Class
}

// VerdictDir is the folder of the official files, relative to that of the run.
func (r Record) VerdictDir() string {
	if a := r.VerdictRun(); a != nil {
		return a.Dir
	}
	return ""
}

// Conclude takes the class from the run for the verdict, and holds it against
// the reruns. What the machine spoiled proves nothing.
func (r *Record) Conclude() {
	a := r.VerdictRun()
	if a == nil {
		return
	}
	r.Class, r.Resolution, r.Reason, r.Hint = a.Class, a.Resolution, a.Reason, a.Hint
	r.Failure, r.Tier, r.Seconds = a.Failure, a.Tier, a.Seconds
	for _, again := range r.Runs {
		if again.Purpose == ForStability && again.Class.Final() && again.Class != a.Class {
			r.Class, r.Reason = Unstable, fmt.Sprintf("it was %s at first, and %s when it was run again", a.Class, again.Class)
			return
		}
	}
}

// IsOn says whether the verdict is on this prediction, and not on an earlier one
// of the same instance.
func (r Record) IsOn(p trajectories.Prediction) bool {
	return r.Instance == p.InstanceID && r.Model == p.Model && r.Basis.PatchBytes == len(p.Patch) &&
		(p.Patch == "" || r.Basis.PatchSHA256 == PatchHash([]byte(p.Patch)))
}

// isAt says whether a record belongs where it is.
func (r Record) isAt(path string) bool {
	model := filepath.Dir(path)
	return r.Instance+".json" == filepath.Base(path) && strings.ReplaceAll(r.Model, "/", "__") == filepath.Base(model) &&
		r.RunID == filepath.Base(filepath.Dir(model))
}

// IsSound says whether a record, which may be anybody's, has the class that
// follows from its runs and the key that follows from its basis, and leads out of
// no folder.
func (r Record) IsSound() bool {
	again := r.Clone()
	again.Conclude()
	return again.Class == r.Class && r.Basis.Key == r.Basis.ComputeKey() && !slices.ContainsFunc(r.Runs, func(a Attempt) bool {
		return !slices.Contains(Classes(), a.Class) || a.Dir != "" && !filepath.IsLocal(filepath.FromSlash(a.Dir))
	})
}

// FlagNames are those of the flags, each once.
func (r Record) FlagNames() []string {
	var names []string
	for _, f := range r.Flags {
		if name := string(f.Flag); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Quarantine says whether this machine cannot judge the instance of a record,
// as far as its baseline is known.
func (r Record) Quarantine() bool {
	return r.Gold != "" && r.Gold != Resolved || r.Noop == Resolved
}

// Regraded is a verdict that a record had before its logs were judged again,
// and what of its basis has changed since.
type Regraded struct {
	Time          time.Time `json:"time"` // when it was given up
	Class         Class     `json:"class"`
	Resolution    string    `json:"resolution,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	RowSHA256     string    `json:"row_sha256,omitempty"`
	Parser        string    `json:"parser,omitempty"`
	ParserRelease string    `json:"parser_release,omitempty"`
	EvalType      string    `json:"eval_type,omitempty"`
}
