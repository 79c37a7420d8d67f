package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// miniInfo is the info of a mini-swe-agent trajectory, in addition to trajInfo.
type miniInfo struct {
	Exception string `json:"exception_str"`
	Traceback string `json:"traceback"`
	Partial   string `json:"partial_patch"` // mini only
	Stats     struct {
		Cost *model.Cost `json:"instance_cost"`
	} `json:"model_stats"`
	Config struct {
		Agent struct {
			FormatError string `json:"format_error_template"`
		} `json:"agent"`
		ModelType       string `json:"model_type"`
		EnvironmentType string `json:"environment_type"`
		Environment     struct {
			Image string `json:"image"`
		} `json:"environment"`
	} `json:"config"`
}

// readMini reads a .traj.json of mini-swe-agent, release 1 or 2, or one that mini
// wrote.
func readMini(src source, data []byte) (*File, error) {
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	if len(t.turns) == 0 {
		return nil, errors.New("no messages")
	}
	format := cmp.Or(t.Format, trajectories.FormatV1) // releases before the field existed
	b := newBuilder(src, format)
	var info miniInfo
	_ = json.Unmarshal(t.Info, &info) // parse has read the required fields; others are optional
	b.header.InstanceID, b.header.ModelName = t.InstanceID, t.info.Config.Model.Name
	b.header.ModelClass, b.header.EnvironmentClass = info.Config.ModelType, info.Config.EnvironmentType
	b.header.Image = info.Config.Environment.Image
	b.imported.Agent, b.imported.AgentVersion = "mini-swe-agent", t.info.MiniVersion
	b.keepUnknownFields(data, "info", "messages", "trajectory_format", "instance_id")
	b.keepExtra(t.Info, "submission", "exit_status", "exception_str", "traceback", "partial_patch", "mini_version")

	e := ending{
		status: t.info.ExitStatus, submission: t.info.Submission, partial: info.Partial,
		err: info.Exception, stack: info.Traceback, steps: t.info.Stats.Calls, cost: info.Stats.Cost,
	}
	turns := t.turns
	if format == trajectories.FormatV1 {
		turns = e.release1(turns)
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
	return b.done()
}

// release1 removes the last message, a user message with the exit status. If an
// exception ended the attempt, release 1 wrote its text as the submission; release1
// moves it to the error.
func (e *ending) release1(turns []turn) []turn {
	n := len(turns) - 1
	if e.status == "" || n < 0 || turns[n].Role != model.User || turns[n].Content != e.submission {
		return turns
	}
	if v := classify(*e); !v.class.Counts() && e.err == "" {
		e.err, e.submission = e.submission, ""
	}
	return turns[:n]
}

// formatErrorPrefix returns the beginning of messages about a format error: the fixed
// text at the start of the template.
func (i miniInfo) formatErrorPrefix() string {
	fixed, _, _ := strings.Cut(i.Config.Agent.FormatError, "{")
	return strings.TrimSpace(fixed)
}

func isClose(a, b model.Cost) bool {
	d := a - b
	return d < 1e-9 && d > -1e-9
}
