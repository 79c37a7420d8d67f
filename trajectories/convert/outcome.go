package convert

import (
	"strings"
	"time"

	"github.com/minibench/mini/trajectories"
)

// statuses are the words of agents for how an attempt ended, in lower case, and
// the classes they belong to. Names of Python exceptions that are not here are
// internal errors.
var statuses = map[trajectories.Class][]string{
	trajectories.Submitted: {
		"submitted", "completed", "complete", "finished", "finish", "success", "done", "resolved",
	},
	trajectories.Limit: {
		// mini-swe-agent, and mini
		"limitsexceeded", "timeexceeded", "repeatedformaterror", "contextwindowexceeded", "contextwindowexceedederror",
		"contentrefused", "contentpolicyviolationerror",
		// SWE-agent
		"exit_cost", "exit_context", "exit_format", "exit_total_execution_time", "exit_command_timeout", "exit_forfeit",
		"exit_max_steps", "exit_steps",
		// OpenHands
		"stuck", "max_iterations", "max_budget", "unfinished", "rejected",
	},
	trajectories.Provider: {
		"authenticationerror", "ratelimited", "ratelimiterror", "providererror", "badrequest", "badrequesterror",
		"apierror", "apiconnectionerror", "apitimeouterror", "apiresponsevalidationerror", "timeout",
		"serviceunavailableerror", "internalservererror", "badgatewayerror", "notfounderror", "permissiondeniederror",
		"unsupportedparamserror", "retryerror", "scriptexhausted", "unreachable", "exit_api", "llm_error",
	},
	trajectories.Environment: {
		"imagenotfound", "pullfailed", "containerdied", "hostdiskfull", "daemonunavailable", "setupfailed",
		"calledprocesserror", "timeoutexpired", "exit_environment_error", "early_exit", "swerexexception",
		"deploymentnotstartederror", "runtime_error", "agentruntimeerror", "agentruntimedisconnectederror",
		"agentruntimetimeouterror", "agentruntimeunavailableerror",
	},
	trajectories.Interrupted: {
		"interrupted", "keyboardinterrupt", "userinterruption", "budgetexhausted", "exit_interrupted", "stopped",
		"paused", "cancellederror",
	},
	trajectories.Internal: {"internalerror", "exit_error", "error", "failed"},
}

// verdict is the class of an ending, and where it is from.
type verdict struct {
	class   trajectories.Class
	auto    bool // a patch was handed in on behalf of an agent that was stopped
	guessed bool // the status is not in the table
}

// verdictOn sorts an ending into its class. SWE-agent writes "submitted (WHY)"
// where it handed in what there was: why it stopped decides.
func verdictOn(e ending) verdict {
	status := strings.ToLower(strings.TrimSpace(e.status))
	v := verdict{auto: e.auto}
	if why, ok := strings.CutPrefix(status, "submitted ("); ok {
		status, v.auto = strings.TrimSuffix(why, ")"), true
	}
	if strings.HasPrefix(e.err, "Global cost") { // mini-swe-agent's limit of a whole run
		v.class = trajectories.Interrupted
		return v
	}
	for class, words := range statuses {
		for _, word := range words {
			if status == word {
				v.class = class
				v.auto = v.auto || class == trajectories.Limit
				return v
			}
		}
	}
	v.guessed = true
	switch {
	case strings.HasSuffix(status, "error"), strings.HasSuffix(status, "exception"):
		v.class, v.guessed = trajectories.Internal, false
	case e.submission != "":
		v.class = trajectories.Submitted
	default:
		v.class = trajectories.Internal
	}
	return v
}

func (v verdict) outcome(e ending, start, end time.Time) trajectories.Outcome {
	out := trajectories.Outcome{
		Class: v.class, ExitStatus: e.status, Error: e.err, Stack: e.stack,
		Steps: e.steps, Usage: *e.usage, Cost: *e.cost, Start: start, End: end,
		PartialPatch: trajectories.Bytes(e.partial),
	}
	if e.submission == "" {
		return out
	}
	if !v.class.Counts() {
		if e.partial == "" {
			out.PartialPatch = trajectories.Bytes(e.submission)
		}
		return out
	}
	out.Submission, out.Source = trajectories.Bytes(e.submission), trajectories.SourceSubmitted
	out.Autosubmitted = v.auto
	if v.auto || e.worktree {
		out.Source = trajectories.SourceWorktree
	}
	return out
}
