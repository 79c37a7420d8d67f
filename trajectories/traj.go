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

// FormatV2 and FormatV1 name the formats of .traj.json files of mini-swe-agent 2 and
// 1. WriteTraj writes FormatV2.
const (
	FormatV2 = "mini-swe-agent-1.1"
	FormatV1 = "mini-swe-agent-1"
)

// WriteTrajFile writes the .traj.json file of a journal to path, for tools that read
// trajectories of mini-swe-agent. It reads the journal three times, so that it need not
// hold all records in memory.
//
// The file omits abandoned records, but includes their cost. An attempt that did not
// end has no exit message and an empty exit status. Bytes that are not UTF-8 become
// U+FFFD. The file contains the provider's responses if run.traj_response is set in
// the configuration of the attempt, or if the attempt was imported.
func WriteTrajFile(journal, path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return WriteTraj(w, journal) })
}

// WriteTraj is WriteTrajFile for an io.Writer.
func WriteTraj(w io.Writer, journal string) error {
	return writeTraj(w, Read(journal), ReadCurrentBranch(journal))
}

// WriteTrajRecords is WriteTrajFile for records, which must not include abandoned ones.
// It iterates over the records twice.
func WriteTrajRecords(records iter.Seq2[Record, error], path string) error {
	return atomicfile.WriteFunc(path, 0o644, func(w io.Writer) error { return writeTraj(w, records, records) })
}

// writeTraj computes the totals from all records, and the messages from the records of
// the current branch.
func writeTraj(w io.Writer, all, currentBranch iter.Seq2[Record, error]) error {
	s, err := summarizeTraj(all)
	if err == nil {
		err = s.write(w, currentBranch)
	}
	if err != nil {
		return fmt.Errorf("write .traj.json: %w", err)
	}
	return nil
}

// trajSummary is the data of the file about the whole attempt.
type trajSummary struct {
	header  Header
	source  *Import // nil unless the attempt was imported
	outcome Outcome // with totals computed from the calls if the attempt did not end
}

func summarizeTraj(records iter.Seq2[Record, error]) (trajSummary, error) {
	var s trajSummary
	var steps int
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
				steps++
			}
			if !s.header.IsInherited(r.ID) { // the original attempt paid for inherited calls
				cost, usage = cost+c.Cost, usage.Add(c.Usage)
			}
		case TypeResume: // an outcome before it is no longer valid
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
		s.outcome.Steps, s.outcome.Cost, s.outcome.Usage = steps, cost, usage
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
	// PartialPatch and Autosubmitted are extensions of mini with the values of the
	// same fields of Outcome.
	PartialPatch  string `json:"partial_patch,omitempty"`
	Autosubmitted bool   `json:"autosubmitted,omitempty"`
}

func (s trajSummary) info() (trajInfo, error) {
	var info trajInfo
	if len(s.header.Config) > 0 {
		if err := json.Unmarshal(s.header.Config, &info.Config); err != nil {
			return info, fmt.Errorf("configuration in the header: %w", err)
		}
	}
	info.Config.AgentType = s.header.AgentName()
	info.MiniVersion = s.header.MiniVersion
	if s.source != nil {
		info.setSource(*s.source, s.header.ModelName)
	}
	for _, part := range []*json.RawMessage{&info.Config.Agent, &info.Config.Model, &info.Config.Environment} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	info.Config.ModelType = cmp.Or(s.header.ModelClass, info.Config.ModelType)
	info.Config.EnvironmentType = cmp.Or(s.header.EnvironmentClass, info.Config.EnvironmentType)
	info.Stats.Cost, info.Stats.Calls = s.outcome.Cost.IfKnown(s.outcome.Usage), s.outcome.Steps
	info.ExitStatus, info.Submission = s.outcome.ExitStatus, string(s.outcome.Submission)
	info.PartialPatch, info.Autosubmitted = string(s.outcome.PartialPatch), s.outcome.Autosubmitted
	info.Exception, info.Traceback = s.outcome.Error, s.outcome.Stack
	return info, nil
}

// withResponses reports whether the configuration of the attempt requests the
// provider's responses in the file.
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

// write writes the file. Each message is on its own line, so that people can read the
// file. Messages are encoded one at a time, to save memory.
func (s trajSummary) write(w io.Writer, records iter.Seq2[Record, error]) error {
	info, err := s.info()
	if err != nil {
		return err
	}
	if err := writeJSON(w, `{"info": `, info, ",\n\"messages\": ["); err != nil {
		return err
	}
	converter := trajConverter{responses: s.withResponses(), imported: s.source != nil}
	separator := "\n"
	for r, err := range records {
		if err != nil {
			return err
		}
		m, err := converter.convert(r)
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
