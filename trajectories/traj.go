package trajectories

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/model"
)

// FormatV2 and FormatV1 name the formats of .traj.json files of mini-swe-agent 2 and
// 1. WriteTraj writes FormatV2.
const (
	FormatV2 = "mini-swe-agent-1.1"
	FormatV1 = "mini-swe-agent-1"
)

// WriteTrajFile writes the .traj.json file of a journal to path; see Attempt.WriteTraj. It holds
// the attempt in memory.
func WriteTrajFile(journal, path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return WriteTraj(w, journal) })
}

// WriteTraj is WriteTrajFile for an io.Writer.
func WriteTraj(w io.Writer, journal string) error {
	a := &Attempt{Omit: OmitExchanges | OmitPrompts | OmitResponses}
	for r, err := range CheckOrder(Read(journal)) {
		if err == nil {
			err = a.Add(r)
		}
		if err != nil {
			return fmt.Errorf("write .traj.json: %w", err)
		}
		if len(a.Entries) == 0 && a.hasTrajResponses() { // the header and the import record say so
			a.Omit &^= OmitResponses
		}
	}
	a.finish()
	return a.WriteTraj(w)
}

// hasTrajResponses reports whether the .traj.json file has the provider's responses.
func (a *Attempt) hasTrajResponses() bool {
	var config struct {
		Run struct {
			Response bool `json:"traj_response"`
		} `json:"run"`
	}
	return a.Import != nil || json.Unmarshal(a.Header.Config, &config) == nil && config.Run.Response
}

// WriteTraj writes the .traj.json file of the attempt, for tools that read trajectories of
// mini-swe-agent. Each message is on its own line, so that people can read the file.
//
// The file omits abandoned records, but includes their cost. An attempt that did not
// end has no exit message and an empty exit status. Bytes that are not UTF-8 become
// U+FFFD. The file contains the provider's responses if run.traj_response is set in
// the configuration of the attempt, or if the attempt was imported.
func (a *Attempt) WriteTraj(w io.Writer) error {
	err := a.writeTraj(w)
	if err != nil {
		return fmt.Errorf("write .traj.json: %w", err)
	}
	return nil
}

func (a *Attempt) writeTraj(w io.Writer) error {
	info, err := a.trajInfo()
	if err != nil {
		return err
	}
	if err := writeJSON(w, `{"info": `, info, ",\n\"messages\": ["); err != nil {
		return err
	}
	c := trajConverter{Attempt: a, imported: a.Import != nil, responses: a.hasTrajResponses()}
	separator := "\n"
	for i := range a.Entries {
		if err := writeJSON(w, separator, newTrajMessage(a.Entries[i].Message.Message, c.extra(&a.Entries[i], i)), ""); err != nil {
			return err
		}
		separator = ",\n"
	}
	if a.Outcome != nil {
		if err := writeJSON(w, separator, c.exitMessage(), ""); err != nil {
			return err
		}
	}
	return writeJSON(w, "\n],\n\"trajectory_format\": \""+FormatV2+"\",\n\"instance_id\": ", a.Header.InstanceID, "}\n")
}

// trajInfo is the "info" object of the file.
type trajInfo struct {
	Stats struct {
		Cost  *model.Cost `json:"instance_cost"` // null if unknown
		Calls int         `json:"api_calls"`
	} `json:"model_stats"`
	Config struct {
		Agent           json.RawMessage `json:"agent"`
		AgentType       string          `json:"agent_type"`
		Model           json.RawMessage `json:"model"`
		ModelType       string          `json:"model_type"`
		Environment     json.RawMessage `json:"environment"`
		EnvironmentType string          `json:"environment_type"`
	} `json:"config"`
	MiniVersion string `json:"mini_version"`
	ExitStatus  string `json:"exit_status"`
	Submission  string `json:"submission"`
	Exception   string `json:"exception_str,omitempty"`
	Traceback   string `json:"traceback,omitempty"`
	// PartialPatch and Autosubmitted are extensions of mini with the values of the
	// same fields of Outcome.
	PartialPatch  string `json:"partial_patch,omitempty"`
	Autosubmitted bool   `json:"autosubmitted,omitempty"`
}

func (a *Attempt) trajInfo() (trajInfo, error) {
	var info trajInfo
	h := &a.Header
	if len(h.Config) > 0 {
		if err := json.Unmarshal(h.Config, &info.Config); err != nil {
			return info, fmt.Errorf("configuration in the header: %w", err)
		}
	}
	info.Config.AgentType = h.AgentName()
	info.MiniVersion = h.MiniVersion
	if a.Import != nil {
		info.setSource(*a.Import, h.ModelName)
	}
	for _, part := range []*json.RawMessage{&info.Config.Agent, &info.Config.Model, &info.Config.Environment} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	info.Config.ModelType = cmp.Or(h.ModelClass, info.Config.ModelType)
	info.Config.EnvironmentType = cmp.Or(h.EnvironmentClass, info.Config.EnvironmentType)
	spent := a.Totals.Spent()
	o := cmp.Or(a.Outcome, &Outcome{Steps: spent.Steps, Cost: spent.Cost, Usage: spent.Usage})
	info.Stats.Cost, info.Stats.Calls = o.Cost.IfKnown(o.Usage), o.Steps
	info.ExitStatus, info.Submission = o.ExitStatus, string(o.Submission)
	info.PartialPatch, info.Autosubmitted = string(o.PartialPatch), o.Autosubmitted
	info.Exception, info.Traceback = o.Error, o.Stack
	return info, nil
}

// setSource restores the configuration and the agent of an imported attempt.
func (i *trajInfo) setSource(source Import, modelName string) {
	var original struct {
		Config json.RawMessage `json:"config"`
	}
	if strings.HasPrefix(source.Format, "mini-swe-agent-") {
		// The configuration in an imported file can have any form; ignore it if it
		// cannot be decoded.
		if json.Unmarshal(source.Extra, &original) == nil && len(original.Config) > 0 {
			saved := i.Config
			if json.Unmarshal(original.Config, &i.Config) != nil {
				i.Config = saved
			}
		}
		i.MiniVersion = source.AgentVersion
	} else {
		i.Config.AgentType = source.Agent
	}
	if modelJSON, err := encode(map[string]string{"model_name": modelName}); len(i.Config.Model) == 0 && modelName != "" && err == nil {
		i.Config.Model = modelJSON
	}
}

func writeJSON(w io.Writer, prefix string, v any, suffix string) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	for _, part := range []string{prefix, string(b), suffix} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// trajMessage is an element of "messages" of a .traj.json file, in the format of OpenAI
// chat completions. The journal uses the same format except for images.
type trajMessage struct {
	Role      model.Role       `json:"role"`
	Content   any              `json:"content"` // a string, or parts if there are images
	Reasoning string           `json:"reasoning_content,omitempty"`
	Calls     []model.ToolCall `json:"tool_calls,omitempty"`
	CallID    string           `json:"tool_call_id,omitempty"`
	// ProviderData is an extension of mini, see model.Message.
	ProviderData json.RawMessage `json:"kept,omitempty"`
	Extra        any             `json:"extra,omitempty"`
}

func newTrajMessage(m model.Message, extra any) *trajMessage {
	return &trajMessage{
		Role: m.Role, Content: messageContent(m), Reasoning: m.Reasoning,
		Calls: m.ToolCalls, CallID: m.ToolCallID, ProviderData: m.ProviderData, Extra: extra,
	}
}

// contentPart is an element of Content if the message has images.
type contentPart struct {
	Type  string    `json:"type"` // "text" or "image_url"
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func messageContent(m model.Message) any {
	if len(m.Images) == 0 {
		return m.Content
	}
	parts := []contentPart{{Type: "text", Text: m.Content}}
	for _, i := range m.Images {
		url := "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		parts = append(parts, contentPart{Type: "image_url", Image: &imageURL{url}})
	}
	return parts
}
