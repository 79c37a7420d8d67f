package verdicts

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
