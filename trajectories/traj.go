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

// FormatV2 and FormatV1 are the formats of mini-swe-agent's .traj.json files,
// releases 2 and 1. WriteTraj writes FormatV2.
const (
	FormatV2 = "mini-swe-agent-1.1"
	FormatV1 = "mini-swe-agent-1"
)

// WriteTrajFile writes the .traj.json file of a journal, for tools that read
// trajectories of mini-swe-agent. It reads the journal twice and holds one record at
// a time in memory.
//
// Abandoned records are left out, but their cost is included. An attempt that did not
// end has no exit message and an empty exit status. Bytes that are not UTF-8 become
// U+FFFD. The file has the provider's responses only if the configuration of the
// attempt asks for them (run.traj_response).
func WriteTrajFile(journal, path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return WriteTraj(w, journal) })
}

// WriteTraj is WriteTrajFile for a writer.
func WriteTraj(w io.Writer, journal string) error {
	return writeTraj(w, Read(journal), ReadCurrentBranch(journal))
}

// WriteTrajRecords is WriteTrajFile for records, which it reads twice.
func WriteTrajRecords(records iter.Seq2[Record, error], path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return writeTraj(w, records, records) })
}

// writeTraj computes totals from all records, and messages from those of the
// conversation.
func writeTraj(w io.Writer, all, conversation iter.Seq2[Record, error]) error {
	s, err := summarizeTraj(all)
	if err == nil {
		err = s.write(w, conversation)
	}
	if err != nil {
		return fmt.Errorf("write .traj.json: %w", err)
	}
	return nil
}

// trajSummary is the data about the attempt as a whole.
type trajSummary struct {
	header  Header
	source  *Import // set if the attempt was imported
	outcome Outcome // with totals computed from the calls if the attempt did not end
}

func summarizeTraj(records iter.Seq2[Record, error]) (trajSummary, error) {
	var s trajSummary
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
		case TypeCall, TypeSummary, TypeChildCall:
			var c struct {
				Cost  model.Cost  `json:"cost"`
				Usage model.Usage `json:"usage"`
			}
			err = json.Unmarshal(r.Data, &c)
			if IsStep(r) {
				calls++
			}
			if !s.header.IsInherited(r.ID) { // otherwise the original attempt paid for it
				cost, usage = cost+c.Cost, usage.Add(c.Usage)
			}
		case TypeResume: // the attempt continued after this outcome
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
	// PartialPatch is an extension of mini: the diff of an attempt that does not
	// count.
	PartialPatch string `json:"partial_patch,omitempty"`
	// Autosubmitted is an extension of mini: the submission was taken from the
	// working tree at a limit.
	Autosubmitted bool `json:"autosubmitted,omitempty"`
}

func (s trajSummary) info() (trajInfo, error) {
	var i trajInfo
	if len(s.header.Config) > 0 {
		if err := json.Unmarshal(s.header.Config, &i.Config); err != nil {
			return i, fmt.Errorf("configuration in the header: %w", err)
		}
	}
	i.Config.AgentType = "mini"
	i.MiniVersion = s.header.MiniVersion
	if s.source != nil {
		i.setSource(*s.source, s.header.ModelName)
	}
	for _, part := range []*json.RawMessage{&i.Config.Agent, &i.Config.Model, &i.Config.Environment} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	i.Config.ModelType = cmp.Or(s.header.ModelClass, i.Config.ModelType)
	i.Config.EnvironmentType = cmp.Or(s.header.EnvironmentClass, i.Config.EnvironmentType)
	i.Stats.Cost, i.Stats.Calls = s.outcome.Cost.IfKnown(s.outcome.Usage), s.outcome.Steps
	i.ExitStatus, i.Submission = s.outcome.ExitStatus, string(s.outcome.Submission)
	i.PartialPatch, i.Autosubmitted = string(s.outcome.PartialPatch), s.outcome.Autosubmitted
	i.Exception, i.Traceback = s.outcome.Error, s.outcome.Stack
	return i, nil
}

// withResponses reports whether the file is to have the provider's responses.
func (s trajSummary) withResponses() bool {
	var config struct {
		Run struct {
			Response bool `json:"traj_response"`
		} `json:"run"`
	}
	return json.Unmarshal(s.header.Config, &config) == nil && config.Run.Response
}

// setSource restores the configuration and the agent of an imported attempt.
func (i *trajInfo) setSource(source Import, modelName string) {
	var original struct {
		Config json.RawMessage `json:"config"`
	}
	if strings.HasPrefix(source.Format, "mini-swe-agent-") {
		// The file of another agent may have any configuration; ignore one of a
		// different form.
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

// write writes each message on its own line, for readability and streaming.
func (s trajSummary) write(w io.Writer, records iter.Seq2[Record, error]) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	if err := writeJSON(w, `{"info": `, info, ",\n\"messages\": ["); err != nil {
		return err
	}
	t := trajConverter{responses: s.withResponses(), imported: s.source != nil}
	separator := "\n"
	for r, err := range records {
		if err != nil {
			return err
		}
		m, err := t.convert(r)
		if err != nil {
			return fmt.Errorf("record %d: %w", r.ID, err)
		}
		if m == nil {
			continue
		}
		if err := writeJSON(w, separator, m, ""); err != nil {
			return err
		}
		separator = ",\n"
	}
	return writeJSON(w, "\n],\n\"trajectory_format\": \""+FormatV2+"\",\n\"instance_id\": ", s.header.InstanceID, "}\n")
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
