package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// miniInfo has fields of "info" in a trajectory of mini-swe-agent: about the end and the
// configuration of an attempt.
type miniInfo struct {
	ExitStatus  string          `json:"exit_status"`
	Submission  string          `json:"submission"`
	MiniVersion string          `json:"mini_version"`
	Exception   lenient[string] `json:"exception_str"`
	Traceback   lenient[string] `json:"traceback"`
	Partial     lenient[string] `json:"partial_patch"` // only in files that mini wrote
	Stats       struct {
		Calls int                 `json:"api_calls"`
		Cost  lenient[model.Cost] `json:"instance_cost"`
	} `json:"model_stats"`
	Config struct {
		Agent struct {
			ActionRegex string          `json:"action_regex"`
			FormatError lenient[string] `json:"format_error_template"`
		} `json:"agent"`
		Model struct {
			Name string `json:"model_name"`
		} `json:"model"`
		AgentType       lenient[string] `json:"agent_type"` // "mini" in files that mini wrote
		ModelType       lenient[string] `json:"model_type"`
		EnvironmentType lenient[string] `json:"environment_type"`
		Environment     lenient[struct {
			Image lenient[string] `json:"image"`
		}] `json:"environment"`
	} `json:"config"`
}

// readMini reads a .traj.json file of mini-swe-agent 1 or 2, or of mini.
func readMini(src source, data []byte) (*File, error) {
	var t struct {
		Format     string            `json:"trajectory_format"`
		InstanceID string            `json:"instance_id"`
		Info       json.RawMessage   `json:"info"`
		Messages   []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(data, &t); err != nil {
		return nil, explainJSON(err)
	}
	format := cmp.Or(t.Format, trajectories.FormatV1) // early files of release 1 have no format field
	if format != trajectories.FormatV1 && format != trajectories.FormatV2 {
		return nil, fmt.Errorf("unknown trajectory_format %q, want %s or %s", t.Format, trajectories.FormatV1, trajectories.FormatV2)
	}
	var info miniInfo
	if len(t.Info) > 0 {
		if err := json.Unmarshal(t.Info, &info); err != nil {
			return nil, explainJSON(fmt.Errorf("info: %w", err))
		}
	}
	if len(t.Messages) == 0 {
		return nil, errors.New("no messages")
	}
	turns, err := parseTurns(t.Messages, actionPattern(info.Config.Agent.ActionRegex))
	if err != nil {
		return nil, err
	}
	b := newBuilder(src, format)
	b.header.InstanceID, b.header.ModelName = t.InstanceID, info.Config.Model.Name
	b.header.ModelClass, b.header.EnvironmentClass = info.Config.ModelType.value, info.Config.EnvironmentType.value
	b.header.Image = info.Config.Environment.value.Image.value
	b.imported.Agent, b.imported.AgentVersion = "mini-swe-agent", info.MiniVersion
	if info.Config.AgentType.value == "mini" {
		b.imported.Agent = "mini"
	}
	b.setOtherFields(data, "info", "messages", "trajectory_format", "instance_id")
	b.setExtra(t.Info, "submission", "exit_status", "exception_str", "traceback", "partial_patch", "mini_version")

	e := ending{
		status: info.ExitStatus, submission: info.Submission, partial: info.Partial.value,
		err: info.Exception.value, stack: info.Traceback.value, steps: info.Stats.Calls,
	}
	if info.Stats.Cost.set {
		e.cost = &info.Stats.Cost.value
	}
	// formatErrorPrefix is the text of the template before its first placeholder.
	formatErrorPrefix, _, _ := strings.Cut(info.Config.Agent.FormatError.value, "{")
	c := conversation{
		b: b, release1: format == trajectories.FormatV1, formatErrorPrefix: strings.TrimSpace(formatErrorPrefix), textCommands: true,
	}
	if c.release1 {
		turns = e.cutExitMessage(turns)
	}
	c.read(turns)
	if e.status == "" {
		e.status, e.submission = c.exit.Status, c.exit.Submission
	}
	if e.cost != nil && max(*e.cost-b.cost, b.cost-*e.cost) >= 1e-9 {
		b.addLoss("not all costs per call are in the file; the total is kept", 1)
	}
	b.addLoss("a call without a reply in the file, counted as a step", e.steps-b.replies-c.missingReplies)
	b.end(e)
	return b.file()
}

// actionPattern compiles the regular expression by which release 1 finds actions. It
// returns the default if the expression is not valid in Go or has no group.
func actionPattern(expr string) *regexp.Regexp {
	if re, err := regexp.Compile("(?s)" + expr); err == nil && re.NumSubexp() >= 1 {
		return re
	}
	return defaultActions()
}

// cutExitMessage removes the last message of a file of release 1 if it repeats the
// submission. If an exception ended the attempt, release 1 wrote the text of the exception
// as the submission; cutExitMessage moves that text to e.err.
func (e *ending) cutExitMessage(turns []turn) []turn {
	last := len(turns) - 1
	if e.status == "" || turns[last].Role != model.User || turns[last].Content != e.submission {
		return turns
	}
	if v := classify(*e); !v.class.IsResult() && e.err == "" {
		e.err, e.submission = e.submission, ""
	}
	return turns[:last]
}
