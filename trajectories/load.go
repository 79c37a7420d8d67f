package trajectories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// Trajectory is a .traj.json as Parse found it: what the releases of
// mini-swe-agent have in common, with everything else in raw form.
type Trajectory struct {
	// Format is FormatV1 or FormatV2; empty when the file does not say.
	Format     string
	InstanceID string
	Info       Info
	Turns      []Turn
}

// Info is how the attempt ended and what it took, as far as the file says.
type Info struct {
	ExitStatus  string
	Submission  string
	MiniVersion string
	Model       string
	Cost        model.Cost
	Calls       int
	Raw         json.RawMessage // the whole "info"; nil when there is none
}

// Turn is one message. The role "exit" ends a trajectory of release 2.
type Turn struct {
	Role      model.Role
	Content   string // text parts joined; other parts only in Raw
	Reasoning string
	// Commands are those of a reply: its tool calls, else its actions as
	// recorded, else the single block that release 1 asks for.
	Commands []string
	// Calls are the tool calls of a reply, as the model wrote them; CallID is
	// the one that this turn answers.
	Calls  []model.Call
	CallID string
	// Result is what a command did; nil when the turn is no observation.
	Result *Result
	// Interrupt says why the agent spoke instead of a command: "FormatError"
	// and the like.
	Interrupt string
	Time      time.Time       // zero when not recorded
	Raw       json.RawMessage // the message as it stands in the file
}

// Result is what one command did.
type Result struct {
	// Output is the recorded output. Where only the observation's text is
	// left, it is taken from there; an observation that was shortened has
	// none, and Complete is false.
	Output    string
	Complete  bool
	ExitCode  int
	Known     bool // whether ExitCode was recorded
	Exception string
}

// Parse reads a trajectory of mini-swe-agent: release 2, release 1, an object
// with messages, or a bare list of messages. An error has name and what is wrong.
// More than 512 MB are refused.
func Parse(name string, data []byte) (*Trajectory, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("load trajectory %s: more than %d bytes", name, maxFile)
	}
	t, err := parse(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, fmt.Errorf("load trajectory %s: %w", name, err)
	}
	return t, nil
}

// trajFile is the outermost object; pointers tell missing from empty.
type trajFile struct {
	Format     string             `json:"trajectory_format"`
	InstanceID string             `json:"instance_id"`
	Info       json.RawMessage    `json:"info"`
	Messages   *[]json.RawMessage `json:"messages"`
}

type trajFileInfo struct {
	ExitStatus  string `json:"exit_status"`
	Submission  string `json:"submission"`
	MiniVersion string `json:"mini_version"`
	Stats       struct {
		Cost  model.Cost `json:"instance_cost"`
		Calls int        `json:"api_calls"`
	} `json:"model_stats"`
	Config struct {
		Agent struct {
			ActionRegex string `json:"action_regex"`
		} `json:"agent"`
		Model struct {
			Name string `json:"model_name"`
		} `json:"model"`
	} `json:"config"`
}

func parse(data []byte) (*Trajectory, error) {
	var f trajFile
	if list := bytes.TrimSpace(data); bytes.HasPrefix(list, []byte("[")) {
		f.Messages = new([]json.RawMessage)
		if err := json.Unmarshal(data, f.Messages); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Format != "" && f.Format != FormatV1 && f.Format != FormatV2 {
		return nil, fmt.Errorf("trajectory_format %q is not known (known are %s and %s)", f.Format, FormatV1, FormatV2)
	}
	if f.Messages == nil {
		return nil, errors.New("there are no messages: not a trajectory of mini-swe-agent")
	}
	var info trajFileInfo
	if len(f.Info) > 0 {
		if err := json.Unmarshal(f.Info, &info); err != nil {
			return nil, fmt.Errorf("info: %w", err)
		}
	}
	t := &Trajectory{Format: f.Format, InstanceID: f.InstanceID, Info: Info{
		ExitStatus: info.ExitStatus, Submission: info.Submission, MiniVersion: info.MiniVersion,
		Model: info.Config.Model.Name, Cost: info.Stats.Cost, Calls: info.Stats.Calls, Raw: f.Info,
	}}
	return t, t.addTurns(*f.Messages, actionPattern(info.Config.Agent.ActionRegex))
}

// actionPattern compiles the pattern that release 1 found actions with. One
// that Go cannot compile, or that captures nothing, gives way to the default.
func actionPattern(expr string) *regexp.Regexp {
	const usual = "(?s)```(?:bash|mswea_bash_command)\\s*\\n(.*?)\\n```"
	if expr != "" {
		if re, err := regexp.Compile("(?s)" + expr); err == nil && re.NumSubexp() >= 1 {
			return re
		}
	}
	return regexp.MustCompile(usual)
}

func (t *Trajectory) addTurns(messages []json.RawMessage, actions *regexp.Regexp) error {
	for i, raw := range messages {
		turn, err := parseTurn(raw, actions)
		if err != nil {
			return fmt.Errorf("messages[%d]%w", i, err)
		}
		if turn.Result == nil && turn.Role == model.User && turn.Interrupt == "" {
			turn.Result = resultFromText(turn.Content)
		}
		t.Turns = append(t.Turns, turn)
	}
	return nil
}

// resultFromText reads an observation as the templates of release 1 write it.
func resultFromText(text string) *Result {
	head, rest, found := strings.Cut(text, "</returncode>")
	code, tagged := strings.CutPrefix(strings.TrimSpace(head), "<returncode>")
	if !found || !tagged {
		return nil
	}
	r := &Result{}
	if _, err := fmt.Sscanf(code, "%d", &r.ExitCode); err == nil {
		r.Known = true
	}
	rest, found = strings.CutPrefix(strings.TrimLeft(rest, "\n"), "<output>\n")
	if end := strings.LastIndex(rest, "</output>"); found && end >= 0 {
		r.Output, r.Complete = rest[:end], true
	}
	return r
}
