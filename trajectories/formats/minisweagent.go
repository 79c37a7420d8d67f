package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// miniInfo has fields of "info" in a mini-swe-agent trajectory that are not in trajInfo.
type miniInfo struct {
	Exception string `json:"exception_str"`
	Traceback string `json:"traceback"`
	Partial   string `json:"partial_patch"` // only in files that mini wrote
	Stats     struct {
		Cost *model.Cost `json:"instance_cost"`
	} `json:"model_stats"`
	Config struct {
		Agent struct {
			FormatError string `json:"format_error_template"`
		} `json:"agent"`
		AgentType       string `json:"agent_type"` // "mini" in files that mini wrote
		ModelType       string `json:"model_type"`
		EnvironmentType string `json:"environment_type"`
		Environment     struct {
			Image string `json:"image"`
		} `json:"environment"`
	} `json:"config"`
}

// readMini reads a .traj.json file of mini-swe-agent 1 or 2, or of mini.
func readMini(src source, data []byte) (*File, error) {
	t, err := parseMessages(data)
	if err != nil {
		return nil, err
	}
	if len(t.turns) == 0 {
		return nil, errors.New("no messages")
	}
	format := cmp.Or(t.Format, trajectories.FormatV1) // early files of release 1 have no format field
	b := newBuilder(src, format)
	var info miniInfo
	_ = json.Unmarshal(t.Info, &info) // parseMessages checked the required fields; these are optional
	b.header.InstanceID, b.header.ModelName = t.InstanceID, t.info.Config.Model.Name
	b.header.ModelClass, b.header.EnvironmentClass = info.Config.ModelType, info.Config.EnvironmentType
	b.header.Image = info.Config.Environment.Image
	b.imported.Agent, b.imported.AgentVersion = "mini-swe-agent", t.info.MiniVersion
	if info.Config.AgentType == "mini" {
		b.imported.Agent = "mini"
	}
	b.setOtherFields(data, "info", "messages", "trajectory_format", "instance_id")
	b.setExtra(t.Info, "submission", "exit_status", "exception_str", "traceback", "partial_patch", "mini_version")

	e := ending{
		status: t.info.ExitStatus, submission: t.info.Submission, partial: info.Partial,
		err: info.Exception, stack: info.Traceback, steps: t.info.Stats.Calls, cost: info.Stats.Cost,
	}
	turns := t.turns
	if format == trajectories.FormatV1 {
		turns = e.cutExitMessage(turns)
	}
	c := conversation{b: b, release1: format == trajectories.FormatV1, formatErrorPrefix: info.formatErrorPrefix(), textCommands: true}
	if err := c.read(turns); err != nil {
		return nil, err
	}
	if e.status == "" {
		e.status, e.submission = c.exit.Status, c.exit.Submission
	}
	if e.cost != nil && !isClose(*e.cost, b.cost) {
		b.addLoss("not all costs per call are in the file; the total is kept", 1)
	}
	b.addLoss("a call without a reply in the file, counted as a step", e.steps-b.replies-c.missingReplies)
	b.end(e)
	return b.file()
}

// cutExitMessage removes the last message of a file of release 1 if it repeats the
// submission. If an exception ended the attempt, release 1 wrote the text of the exception
// as the submission; cutExitMessage moves that text to e.err.
func (e *ending) cutExitMessage(turns []turn) []turn {
	last := len(turns) - 1
	if e.status == "" || last < 0 || turns[last].Role != model.User || turns[last].Content != e.submission {
		return turns
	}
	if v := classify(*e); !v.class.IsResult() && e.err == "" {
		e.err, e.submission = e.submission, ""
	}
	return turns[:last]
}

// formatErrorPrefix returns the beginning of messages about format errors: the text of the
// template before its first placeholder.
func (i miniInfo) formatErrorPrefix() string {
	prefix, _, _ := strings.Cut(i.Config.Agent.FormatError, "{")
	return strings.TrimSpace(prefix)
}

func isClose(a, b model.Cost) bool {
	difference := a - b
	return difference < 1e-9 && difference > -1e-9
}
