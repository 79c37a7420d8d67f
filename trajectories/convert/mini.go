package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// miniInfo is what mini-swe-agent says of a whole attempt, beyond what
// trajectories.Info has.
type miniInfo struct {
	Exception string `json:"exception_str"`
	Traceback string `json:"traceback"`
	Partial   string `json:"partial_patch"` // mini's own
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

// readMini reads the .traj.json of mini-swe-agent, releases 1 and 2, and those
// that mini derives.
func readMini(src source, data []byte) (*File, error) {
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	if len(t.Turns) == 0 {
		return nil, errors.New("there are no messages")
	}
	format := cmp.Or(t.Format, trajectories.FormatV1) // which is older than the field
	b := newBuilder(src, format)
	var info miniInfo
	_ = json.Unmarshal(t.Info.Raw, &info) // parse has read what matters; fields of other types say nothing here
	b.header.InstanceID, b.header.ModelName = t.InstanceID, t.Info.Model
	b.header.ModelClass, b.header.EnvironmentClass = info.Config.ModelType, info.Config.EnvironmentType
	b.header.Image = info.Config.Environment.Image
	b.from.Agent, b.from.AgentVersion = "mini-swe-agent", t.Info.MiniVersion
	b.others(data, "info", "messages", "trajectory_format", "instance_id")
	b.extra(t.Info.Raw, "submission", "exit_status", "exception_str", "traceback", "partial_patch", "mini_version")

	e := ending{
		status: t.Info.ExitStatus, submission: t.Info.Submission, partial: info.Partial,
		err: info.Exception, stack: info.Traceback, steps: t.Info.Calls, cost: info.Stats.Cost,
	}
	turns := t.Turns
	if format == trajectories.FormatV1 {
		turns = e.release1(turns)
	}
	c := conversation{b: b, release1: format == trajectories.FormatV1, refusal: info.refusal(), text: true}
	if err := c.read(turns); err != nil {
		return nil, err
	}
	if e.status == "" {
		e.status, e.submission = c.exit.Status, c.exit.Submission
	}
	if e.cost != nil && !near(*e.cost, b.cost) {
		b.lose("the costs of single calls are not all in the file; the total is kept", 1)
	}
	b.lose("a call whose reply is not in the file; it counts as a step", e.steps-b.replies-c.refusals)
	b.end(e)
	return b.done()
}

// release1 takes the last message, which is the user's and says how it ended,
// for what it is. Where an exception ended it, release 1 writes its words as the
// submission.
func (e *ending) release1(turns []trajectories.Turn) []trajectories.Turn {
	n := len(turns) - 1
	if e.status == "" || n < 0 || turns[n].Role != model.User || turns[n].Content != e.submission {
		return turns
	}
	if v := verdictOn(*e); !v.class.Counts() && e.err == "" {
		e.err, e.submission = e.submission, ""
	}
	return turns[:n]
}

// refusal is how an answer to a reply without exactly one action begins, as far
// as the template is fixed text.
func (i miniInfo) refusal() string {
	fixed, _, _ := strings.Cut(i.Config.Agent.FormatError, "{")
	return strings.TrimSpace(fixed)
}

func near(a, b model.Cost) bool {
	d := a - b
	return d < 1e-9 && d > -1e-9
}

// parse is trajectories.Parse, with errors that do not name the file.
func parse(data []byte) (*trajectories.Trajectory, error) {
	t, err := trajectories.Parse("", data)
	if inner := errors.Unwrap(err); inner != nil {
		err = explain(inner)
	}
	return t, err
}
