package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// trajectory is a .traj.json file, with the fields that all releases of mini-swe-agent
// have.
type trajectory struct {
	Format     string             `json:"trajectory_format"` // trajectories.FormatV1, FormatV2, or empty
	InstanceID string             `json:"instance_id"`
	Info       json.RawMessage    `json:"info"`
	Messages   *[]json.RawMessage `json:"messages"` // nil if missing

	info  trajInfo
	turns []turn
}

// turn is a message of a trajectory.
type turn struct {
	Role      model.Role // "exit" for the last message of release 2
	Content   string     // the text parts; Raw has the other parts
	Reasoning string
	// Commands are the commands of a reply, see trajTurn.commands.
	Commands []string
	// Calls are the tool calls of a reply. CallID is the ID of the call that a tool
	// message answers.
	Calls  []model.ToolCall
	CallID string
	// Result is the result of a command; nil if the message has none.
	Result *result
	// Interrupt is the interrupt type of a message that is not a command's output, such
	// as "FormatError".
	Interrupt string
	Time      time.Time       // zero if unknown
	Raw       json.RawMessage // the message in the file

	content  json.RawMessage // "content" in the file
	provider json.RawMessage // model.Message.ProviderData
	response bool            // Raw is a provider's response
	extra    turnExtra
}

// result is the result of a command.
type result struct {
	// Output is the recorded output, or else the output in the text of the message. If
	// the text has only a part of the output, Output is empty and Complete is false.
	Output      string
	Complete    bool
	ExitCode    int
	HasExitCode bool // ExitCode is known
	Exception   string
}

// trajInfo has the fields of "info" that all files may have: about the end and the
// configuration of an attempt.
type trajInfo struct {
	ExitStatus  string `json:"exit_status"`
	Submission  string `json:"submission"`
	MiniVersion string `json:"mini_version"`
	Stats       struct {
		Calls int `json:"api_calls"`
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

// parseMessages reads a trajectory of mini-swe-agent 1 or 2, an object with messages, or a
// list of messages.
func parseMessages(data []byte) (*trajectory, error) {
	t, err := parseTrajectory(data)
	return t, explainJSON(err)
}

// parseTrajectory is parseMessages with errors that contain Go type names.
func parseTrajectory(data []byte) (*trajectory, error) {
	t := &trajectory{}
	var err error
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("[")) {
		err = json.Unmarshal(data, &t.Messages)
	} else {
		err = json.Unmarshal(data, t)
	}
	if err != nil {
		return nil, err
	}
	if t.Format != "" && t.Format != trajectories.FormatV1 && t.Format != trajectories.FormatV2 {
		return nil, fmt.Errorf("unknown trajectory_format %q, want %s or %s", t.Format, trajectories.FormatV1, trajectories.FormatV2)
	}
	if t.Messages == nil {
		return nil, errors.New("no messages: not a trajectory of mini-swe-agent")
	}
	if len(t.Info) > 0 {
		if err := json.Unmarshal(t.Info, &t.info); err != nil {
			return nil, fmt.Errorf("info: %w", err)
		}
	}
	return t, t.addTurns(actionPattern(t.info.Config.Agent.ActionRegex))
}

// actionPattern compiles the regular expression by which release 1 finds actions. It
// returns the default if the expression is not valid in Go or has no group.
func actionPattern(expr string) *regexp.Regexp {
	const defaultPattern = "(?s)```(?:bash|mswea_bash_command)\\s*\\n(.*?)\\n```"
	if expr != "" {
		if re, err := regexp.Compile("(?s)" + expr); err == nil && re.NumSubexp() >= 1 {
			return re
		}
	}
	return regexp.MustCompile(defaultPattern)
}

func (t *trajectory) addTurns(actions *regexp.Regexp) error {
	for i, raw := range *t.Messages {
		message, err := parseTurn(raw, actions)
		if err != nil {
			return fmt.Errorf("messages[%d]%w", i, err)
		}
		if message.Result == nil && message.Role == model.User && message.Interrupt == "" {
			message.Result = resultFromText(message.Content)
		}
		t.turns = append(t.turns, message)
	}
	return nil
}

// resultFromText returns the result in an observation that has the format of release 1's
// template, or nil.
func resultFromText(text string) *result {
	beforeTag, rest, found := strings.Cut(text, "</returncode>")
	code, hasTag := strings.CutPrefix(strings.TrimSpace(beforeTag), "<returncode>")
	if !found || !hasTag {
		return nil
	}
	r := &result{}
	if _, err := fmt.Sscanf(code, "%d", &r.ExitCode); err == nil {
		r.HasExitCode = true
	}
	rest, found = strings.CutPrefix(strings.TrimLeft(rest, "\n"), "<output>\n")
	if end := strings.LastIndex(rest, "</output>"); found && end >= 0 {
		r.Output, r.Complete = rest[:end], true
	}
	return r
}
