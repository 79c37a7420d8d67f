package verdicts

// Class says how an evaluation ended. The names are part of the format of
// records.
type Class string

// The classes; the package's comment says what leads to which.
const (
	Resolved       Class = "resolved"
	Unresolved     Class = "unresolved"
	Unstable       Class = "unstable"       // runs of the same patch ended differently
	Empty          Class = "empty"          // there was no patch to run
	ApplyFailed    Class = "apply_failed"   // the patch does not apply
	TimedOut       Class = "timed_out"      // the script took too long
	Infrastructure Class = "infrastructure" // no verdict: the machine failed, not the patch
	Error          Class = "error"          // no verdict: the official parser crashes on the log
)

// Classes are all classes, in the order in which tables have them.
func Classes() []Class {
	return []Class{Resolved, Unresolved, Unstable, Empty, ApplyFailed, TimedOut, Infrastructure, Error}
}

// Final says that evaluating the same again is of no use: nothing but
// infrastructure passes.
func (c Class) Final() bool { return c != "" && c != Infrastructure }

// Failed says that Config.RerunFailed runs it again. A patch that does not
// apply will not the next time either.
func (c Class) Failed() bool { return c == Unresolved || c == TimedOut || c == Error }
