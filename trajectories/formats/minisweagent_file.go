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

// trajectory is a .traj.json file: the fields that all releases of mini-swe-agent
// have, and the rest as raw JSON.
type trajectory struct {
	// Format is trajectories.FormatV1 or FormatV2, or empty.
	Format     string             `json:"trajectory_format"`
	InstanceID string             `json:"instance_id"`
	Info       json.RawMessage    `json:"info"`
	Messages   *[]json.RawMessage `json:"messages"` // nil if missing

	info  trajInfo
	turns []turn
}

// turn is a message. The role "exit" ends a trajectory of release 2.
type turn struct {
	Role      model.Role
	Content   string // text parts joined; Raw has the other parts
	Reasoning string
	// Commands are the commands of a reply: of its tool calls, else of its recorded
	// actions, else the code block in the text.
	Commands []string
	// Calls are the tool calls of a reply. CallID is the call that this message
	// answers.
	Calls  []model.ToolCall
	CallID string
	// Result is the result of a command; nil if the message has none.
	Result *result
	// Interrupt is the reason for a message that is not a command's output, such as
	// "FormatError".
	Interrupt string
	Time      time.Time       // zero if unknown
	Raw       json.RawMessage // the message in the file

	content  json.RawMessage
	kept     json.RawMessage
	response bool // the message is a provider's response
	extra    turnExtra
}

// result is the result of a command.
type result struct {
	// Output is the recorded output, or else the output in the observation. If that
	// was truncated, Output is empty and Complete is false.
	Output      string
	Complete    bool
	ExitCode    int
	HasExitCode bool // ExitCode is known
	Exception   string
}

// trajInfo describes the end and the configuration of an attempt.
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

// parse reads a trajectory of mini-swe-agent, release 1 or 2, an object with
// messages, or a list of messages.
func parse(data []byte) (*trajectory, error) {
	t, err := parseTrajectory(data)
	return t, explain(err)
}

func parseTrajectory(data []byte) (*trajectory, error) {
	f := &trajectory{}
	var err error
	if list := bytes.TrimSpace(data); bytes.HasPrefix(list, []byte("[")) {
		err = json.Unmarshal(data, &f.Messages)
	} else {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		return nil, err
	}
	if f.Format != "" && f.Format != trajectories.FormatV1 && f.Format != trajectories.FormatV2 {
		return nil, fmt.Errorf("unknown trajectory_format %q, want %s or %s", f.Format, trajectories.FormatV1, trajectories.FormatV2)
	}
	if f.Messages == nil {
		return nil, errors.New("no messages: not a trajectory of mini-swe-agent")
	}
	if len(f.Info) > 0 {
		if err := json.Unmarshal(f.Info, &f.info); err != nil {
			return nil, fmt.Errorf("info: %w", err)
		}
	}
	return f, f.addTurns(actionPattern(f.info.Config.Agent.ActionRegex))
}

// actionPattern compiles the regular expression that release 1 uses to find actions.
// If it is invalid in Go, or has no group, the default is used.
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

// resultFromText parses an observation in the format of release 1's template.
func resultFromText(text string) *result {
	head, rest, found := strings.Cut(text, "</returncode>")
	code, tagged := strings.CutPrefix(strings.TrimSpace(head), "<returncode>")
	if !found || !tagged {
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
