package trajectories

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/model"
)

// FormatV2 and FormatV1 name the layouts of mini-swe-agent's .traj.json files,
// releases 2 and 1. Derive writes the newer one.
const (
	FormatV2 = "mini-swe-agent-1.1"
	FormatV1 = "mini-swe-agent-1"
)

// Derive writes the .traj.json of a journal, for the tools that read
// mini-swe-agent's. It goes through the journal more than once and holds one
// record at a time. What was left behind when an interrupted attempt went on is
// not in it, but for what it cost. An attempt that never ended has no exit
// message and an empty exit status. Bytes that are not UTF-8 become U+FFFD; the
// journal keeps them, and the provider's own responses, which the file has only
// where the attempt's configuration asks for them (run.traj_response).
func Derive(journal, path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return DeriveTo(w, journal) })
}

// DeriveTo is Derive to a writer.
func DeriveTo(w io.Writer, journal string) error { return derive(w, Read(journal), Branch(journal)) }

// DeriveFrom is Derive for records that can be gone through twice.
func DeriveFrom(records iter.Seq2[Record, error], path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return derive(w, records, records) })
}

// derive counts all records, and writes those of the conversation.
func derive(w io.Writer, all, conversation iter.Seq2[Record, error]) error {
	s, err := summarize(all)
	if err == nil {
		err = s.write(w, conversation)
	}
	if err != nil {
		return fmt.Errorf("derive trajectory: %w", err)
	}
	return nil
}

// summary is what stands at the head of the file and is known at its end.
type summary struct {
	header  Header
	source  *Import // where the attempt was another agent's
	outcome Outcome // its totals are counted where the attempt never ended
}

func summarize(records iter.Seq2[Record, error]) (summary, error) {
	var s summary
	var calls int
	var cost model.Cost
	var usage model.Usage
	ended := false
	for r, err := range records {
		if err != nil {
			return s, err
		}
		switch r.Type {
		case TypeHeader:
			err = json.Unmarshal(r.Data, &s.header)
		case TypeImport:
			s.source = &Import{}
			err = json.Unmarshal(r.Data, s.source)
		case TypeCall, TypeSummary, TypeSpent:
			var c struct {
				Cost  model.Cost  `json:"cost"`
				Usage model.Usage `json:"usage"`
			}
			err = json.Unmarshal(r.Data, &c)
			if IsStep(r) {
				calls++
			}
			if !s.header.Inherited(r.ID) { // else it was paid for there
				cost, usage = cost+c.Cost, usage.Add(c.Usage)
			}
		case TypeResume: // the end before it was none
			ended, s.outcome = false, Outcome{}
		case TypeOutcome:
			ended = true
			err = json.Unmarshal(r.Data, &s.outcome)
		}
		if err != nil {
			return s, fmt.Errorf("record %d: %w", r.ID, err)
		}
	}
	if !ended {
		s.outcome.Steps, s.outcome.Cost, s.outcome.Usage = calls, cost, usage
	}
	return s, nil
}

// trajInfo is the "info" of the file.
type trajInfo struct {
	Stats struct {
		Cost  *model.Cost `json:"instance_cost"` // null where nobody knows any of it
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
	// PartialPatch is mini's own: the work of an attempt that does not count.
	PartialPatch string `json:"partial_patch,omitempty"`
	// Autosubmitted is mini's own too: the submission is the working diff at a limit.
	Autosubmitted bool `json:"autosubmitted,omitempty"`
}

func (s summary) info() (trajInfo, error) {
	var i trajInfo
	if len(s.header.Config) > 0 {
		if err := json.Unmarshal(s.header.Config, &i.Config); err != nil {
			return i, fmt.Errorf("configuration in the header: %w", err)
		}
	}
	i.Config.AgentType = "mini"
	i.MiniVersion = s.header.MiniVersion
	if s.source != nil {
		i.attribute(*s.source, s.header.ModelName)
	}
	for _, part := range []*json.RawMessage{&i.Config.Agent, &i.Config.Model, &i.Config.Environment} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	i.Config.ModelType = cmp.Or(s.header.ModelClass, i.Config.ModelType)
	i.Config.EnvironmentType = cmp.Or(s.header.EnvironmentClass, i.Config.EnvironmentType)
	i.Stats.Cost, i.Stats.Calls = s.outcome.Cost.Known(s.outcome.Usage), s.outcome.Steps
	i.ExitStatus, i.Submission = s.outcome.ExitStatus, string(s.outcome.Submission)
	i.PartialPatch, i.Autosubmitted = string(s.outcome.PartialPatch), s.outcome.Autosubmitted
	i.Exception, i.Traceback = s.outcome.Error, s.outcome.Stack
	return i, nil
}

// responses says whether the attempt was to show the provider's own.
func (s summary) responses() bool {
	var config struct {
		Run struct {
			Response bool `json:"traj_response"`
		} `json:"run"`
	}
	return json.Unmarshal(s.header.Config, &config) == nil && config.Run.Response
}

// attribute gives an attempt of another agent back to it.
func (i *trajInfo) attribute(source Import, modelName string) {
	var said struct {
		Config json.RawMessage `json:"config"`
	}
	if strings.HasPrefix(source.Format, "mini-swe-agent-") {
		// What another agent's file says may have any form; then it is left out.
		if json.Unmarshal(source.Extra, &said) == nil && len(said.Config) > 0 {
			own := i.Config
			if json.Unmarshal(said.Config, &i.Config) != nil {
				i.Config = own
			}
		}
		i.MiniVersion = source.AgentVersion
	} else {
		i.Config.AgentType = source.Agent
	}
	if named, err := encode(map[string]string{"model_name": modelName}); len(i.Config.Model) == 0 && modelName != "" && err == nil {
		i.Config.Model = named
	}
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
	t := translator{responses: s.responses(), imported: s.source != nil}
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
