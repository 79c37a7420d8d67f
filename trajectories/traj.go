package trajectories

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/minibench/mini/model"
)

// FormatV2 and FormatV1 name the layouts of mini-swe-agent's .traj.json files,
// releases 2 and 1. Derive writes the newer one.
const (
	FormatV2 = "mini-swe-agent-1.1"
	FormatV1 = "mini-swe-agent-1"
)

// Derive writes the .traj.json of a journal, for the tools that read
// mini-swe-agent's. It goes through the journal twice and holds one record at
// a time. An attempt that never ended has no exit message and an empty exit
// status. Bytes that are not UTF-8 become U+FFFD; the journal keeps them.
func Derive(journal, path string) error { return DeriveFrom(Read(journal), path) }

// DeriveFrom is Derive for records that can be gone through twice.
func DeriveFrom(records iter.Seq2[Record, error], path string) error {
	s, err := summarize(records)
	if err != nil {
		return fmt.Errorf("derive trajectory: %w", err)
	}
	err = writeAtomic(path, func(w io.Writer) error { return s.write(w, records) })
	if err != nil {
		return fmt.Errorf("derive trajectory: %w", err)
	}
	return nil
}

// summary is what stands at the head of the file and is known at its end.
type summary struct {
	header  Header
	outcome Outcome // its totals are counted where the attempt never ended
}

func summarize(records iter.Seq2[Record, error]) (summary, error) {
	var s summary
	var calls int
	var cost model.Cost
	ended := false
	for r, err := range records {
		if err != nil {
			return s, err
		}
		switch r.Type {
		case TypeHeader:
			err = json.Unmarshal(r.Data, &s.header)
		case TypeCall:
			var c struct {
				Cost model.Cost `json:"cost"`
			}
			err = json.Unmarshal(r.Data, &c)
			calls, cost = calls+1, cost+c.Cost
		case TypeOutcome:
			ended = true
			err = json.Unmarshal(r.Data, &s.outcome)
		}
		if err != nil {
			return s, fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	if !ended {
		s.outcome.Steps, s.outcome.Cost = calls, cost
	}
	return s, nil
}

// trajInfo is the "info" of the file.
type trajInfo struct {
	Stats struct {
		Cost  model.Cost `json:"instance_cost"`
		Calls int        `json:"api_calls"`
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
}

func (s summary) info() (trajInfo, error) {
	var i trajInfo
	if len(s.header.Config) > 0 {
		if err := json.Unmarshal(s.header.Config, &i.Config); err != nil {
			return i, fmt.Errorf("configuration in the header: %w", err)
		}
	}
	for _, part := range []*json.RawMessage{&i.Config.Agent, &i.Config.Model, &i.Config.Environment} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	i.Config.AgentType = "mini"
	i.Config.ModelType, i.Config.EnvironmentType = s.header.ModelClass, s.header.EnvironmentClass
	i.Stats.Cost, i.Stats.Calls = s.outcome.Cost, s.outcome.Steps
	i.MiniVersion = s.header.MiniVersion
	i.ExitStatus, i.Submission = s.outcome.ExitStatus, string(s.outcome.Submission)
	i.Exception, i.Traceback = s.outcome.Error, s.outcome.Stack
	return i, nil
}

// write puts one message on a line: readable by people, and cheap to stream.
func (s summary) write(w io.Writer, records iter.Seq2[Record, error]) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	if err := writeJSON(w, `{"info": `, info, ",\n\"messages\": ["); err != nil {
		return err
	}
	var t translator
	before := "\n"
	for r, err := range records {
		if err != nil {
			return err
		}
		m, err := t.translate(r)
		if err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		if m == nil {
			continue
		}
		if err := writeJSON(w, before, m, ""); err != nil {
			return err
		}
		before = ",\n"
	}
	return writeJSON(w, "\n],\n\"trajectory_format\": \""+FormatV2+"\",\n\"instance_id\": ", s.header.InstanceID, "}\n")
}

func writeJSON(w io.Writer, before string, v any, after string) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	for _, part := range []string{before, string(b), after} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// translator turns records into messages. A message takes its extras from the
// call or the execution that stands before it.
type translator struct {
	call      Call
	reply     Message
	execution Execution
}

type trajAction struct {
	Command string `json:"command"`
	CallID  string `json:"tool_call_id,omitempty"`
}

type replyExtra struct {
	Actions   []trajAction    `json:"actions"`
	Response  json.RawMessage `json:"response,omitempty"`
	Model     string          `json:"model,omitempty"` // who answered
	Cost      model.Cost      `json:"cost"`
	Timestamp float64         `json:"timestamp"`
}

type observationExtra struct {
	RawOutput  string  `json:"raw_output"`
	ReturnCode int     `json:"returncode"`
	Timestamp  float64 `json:"timestamp"`
	Exception  string  `json:"exception_info"`
}

type interruptExtra struct {
	Type          string `json:"interrupt_type"`
	Actions       int    `json:"n_actions"`
	ModelResponse string `json:"model_response"`
}

type exitExtra struct {
	Status     string `json:"exit_status"`
	Submission string `json:"submission"`
}

// roleExit is the role of the last message of a finished attempt.
const roleExit model.Role = "exit"

// translate returns nil for records that are no message by themselves.
func (t *translator) translate(r Record) (*trajMessage, error) {
	switch r.Type {
	case TypeCall:
		t.call = Call{}
		return nil, json.Unmarshal(r.Data, &t.call)
	case TypeExecution:
		t.execution = Execution{}
		return nil, json.Unmarshal(r.Data, &t.execution)
	case TypeMessage:
		var m Message
		if err := json.Unmarshal(r.Data, &m); err != nil {
			return nil, err
		}
		return newTrajMessage(m.Message, t.extra(m, r.Time)), nil
	case TypeOutcome:
		var o Outcome
		if err := json.Unmarshal(r.Data, &o); err != nil {
			return nil, err
		}
		text := string(o.Submission)
		if text == "" {
			text = o.ExitStatus
		}
		extra := exitExtra{Status: o.ExitStatus, Submission: string(o.Submission)}
		return newTrajMessage(model.Message{Role: roleExit, Content: text}, extra), nil
	}
	return nil, nil
}

func (t *translator) extra(m Message, at time.Time) any {
	timestamp := float64(at.UnixMicro()) / 1e6
	switch m.Cause {
	case CauseReply:
		t.reply = m
		e := replyExtra{Actions: []trajAction{}, Response: t.call.Raw, Model: t.call.Model, Cost: t.call.Cost, Timestamp: timestamp}
		for i, command := range m.Actions {
			a := trajAction{Command: command}
			if len(m.Calls) == len(m.Actions) {
				a.CallID = m.Calls[i].ID
			}
			e.Actions = append(e.Actions, a)
		}
		return e
	case CauseObservation, CauseMalformedPatch:
		x := t.execution
		return observationExtra{
			RawOutput: x.text(), ReturnCode: x.ExitCode,
			Timestamp: timestamp, Exception: x.Exception,
		}
	case CauseFormatError:
		return t.interrupt("FormatError")
	case CauseRejection:
		return t.interrupt("UserRejection")
	case CauseNotRun:
		return t.interrupt("NotRun")
	}
	return nil
}

func (t *translator) interrupt(kind string) interruptExtra {
	asked := max(len(t.reply.Actions), len(t.reply.Calls))
	return interruptExtra{Type: kind, Actions: asked, ModelResponse: t.reply.Content}
}

// text is the output, with a line where some of it was not kept.
func (x Execution) text() string {
	if !x.Truncated || x.Head < 0 || x.Head > len(x.Output) {
		return string(x.Output)
	}
	left := strconv.FormatInt(x.Bytes-int64(len(x.Output)), 10)
	return string(x.Output[:x.Head]) + "\n[" + left + " bytes were not kept]\n" + string(x.Output[x.Head:])
}
