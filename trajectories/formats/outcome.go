package formats

import (
	"strings"
	"time"

	"github.com/minibench/mini/trajectories"
)

// statuses maps outcome classes to the exit statuses of agents, in lower case. Other
// statuses that are names of Python exceptions are of class Internal, see classify.
var statuses = map[trajectories.Class][]string{
	trajectories.Submitted: {
		"submitted", "submit", "completed", "complete", "finished", "finish", "success", "done", "resolved",
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

// classification is the class of an ending.
type classification struct {
	class         trajectories.Class
	autosubmitted bool // the agent was stopped and did not submit the submission itself
	guessed       bool // the status is unknown
}

// classify classifies an ending by its exit status. SWE-agent writes "submitted (REASON)"
// if it submitted for an agent that was stopped; REASON determines the class.
func classify(e ending) classification {
	status := strings.ToLower(strings.TrimSpace(e.status))
	c := classification{autosubmitted: e.autosubmitted}
	if reason, ok := strings.CutPrefix(status, "submitted ("); ok {
		status, c.autosubmitted = strings.TrimSuffix(reason, ")"), true
	}
	if strings.HasPrefix(e.err, "Global cost") { // the cost limit of mini-swe-agent for a whole run
		c.class = trajectories.Interrupted
		return c
	}
	for class, words := range statuses {
		for _, word := range words {
			if status == word {
				c.class = class
				c.autosubmitted = c.autosubmitted || class == trajectories.Limit
				return c
			}
		}
	}
	c.guessed = true
	switch {
	case strings.HasSuffix(status, "error"), strings.HasSuffix(status, "exception"):
		c.class, c.guessed = trajectories.Internal, false
	case e.submission != "":
		c.class = trajectories.Submitted
	default:
		c.class = trajectories.Internal
	}
	return c
}

// outcome returns the outcome for the ending e.
func (c classification) outcome(e ending, start, end time.Time) trajectories.Outcome {
	o := trajectories.Outcome{
		Class: c.class, ExitStatus: e.status, Error: e.err, Stack: e.stack,
		Steps: e.steps, Usage: *e.usage, Cost: *e.cost, Start: start, End: end,
		PartialPatch: trajectories.Bytes(e.partial),
	}
	if e.submission == "" {
		return o
	}
	if !c.class.IsResult() {
		if e.partial == "" {
			o.PartialPatch = trajectories.Bytes(e.submission)
		}
		return o
	}
	o.Submission, o.Source = trajectories.Bytes(e.submission), trajectories.SourceSubmitted
	o.Autosubmitted = c.autosubmitted
	if c.autosubmitted || e.fromWorktree {
		o.Source = trajectories.SourceWorktree
	}
	return o
}
