package atif

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
)

// This file has the rules that package schema cannot express.

// versionPattern matches schema versions; its group is the minor version.
var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ATIF-v1\.(0|[1-9][0-9]?)$`) })

// version validates a schema version for schema.Reader.Formats.
func (r *reader) version(s string) string {
	minor := -1
	if m := versionPattern().FindStringSubmatch(s); m != nil {
		minor, _ = strconv.Atoi(m[1])
	}
	switch {
	case 0 <= minor && minor <= int(r.spec):
	case minor >= 0 && r.lenient:
		r.newer = true
		r.notes = append(r.notes, fmt.Sprintf("the version %s is unknown; the file was read as 1.%d", s, r.spec))
	default:
		return fmt.Sprintf("ATIF-v1.0 to ATIF-v1.%d expected, got %.60q", r.spec, s)
	}
	return ""
}

// trajectory checks the relations between the fields of a trajectory.
func (r *reader) trajectory(t *Trajectory) {
	if t.SchemaVersion == "" {
		t.SchemaVersion = WriteVersion
		r.notes = append(r.notes, "the file has no version; it was read as "+WriteVersion)
	}
	if len(t.Steps) == 0 {
		r.problemAt("steps", "at least one step required")
	}
	embedded := map[string]bool{}
	for i, sub := range t.Subagents {
		path := fmt.Sprintf("subagent_trajectories.%d.trajectory_id", i)
		switch {
		case sub.TrajectoryID == nil:
			r.problemAt(path, "required in an embedded trajectory")
		case embedded[*sub.TrajectoryID]:
			r.problemAt(path, "%.60q is a duplicate", *sub.TrajectoryID)
		default:
			embedded[*sub.TrajectoryID] = true
		}
	}
	for i, s := range t.Steps {
		r.Within(fmt.Sprintf("steps.%d", i), func() {
			if s.ID != int64(i+1) {
				r.problemAt("step_id", "%d expected (steps are numbered from 1), got %d", i+1, s.ID)
			}
			r.checkCalls(s, embedded)
		})
	}
}

// checkCalls checks the IDs of the tool calls in a step, and the references of its results
// to tool calls and to embedded trajectories.
func (r *reader) checkCalls(s Step, embedded map[string]bool) {
	strict := !r.lenient && r.spec >= Spec18
	ids := make(map[string]bool, len(s.Calls))
	for i, c := range s.Calls {
		if strict && ids[c.ID] {
			r.problemAt(fmt.Sprintf("tool_calls.%d.tool_call_id", i), "%.60q is a duplicate in this step", c.ID)
		}
		ids[c.ID] = true
	}
	for i, result := range s.results() {
		path := fmt.Sprintf("observation.results.%d.", i)
		if result.CallID != nil && !ids[*result.CallID] {
			r.problemAt(path+"source_call_id", "%.60q is not a tool_call_id of this step", *result.CallID)
		}
		for k, ref := range result.Refs {
			if strict && ref.Path == nil && ref.TrajectoryID != nil && !embedded[*ref.TrajectoryID] {
				r.problemAt(fmt.Sprintf("%ssubagent_trajectory_ref.%d.trajectory_id", path, k),
					"%.60q is not an embedded trajectory, and there is no trajectory_path", *ref.TrajectoryID)
			}
		}
	}
}

// results returns the results of the tool calls of a step.
func (s Step) results() []Result {
	if s.Observation == nil {
		return nil
	}
	return s.Observation.Results
}

// step checks the relations between the fields of a step.
func (r *reader) step(s *Step) {
	for _, field := range []struct {
		name             string
		isSet, needsCall bool // needsCall: only steps with a model call may have the field
	}{
		{"model_name", s.ModelName != nil, false},
		{"reasoning_effort", s.Effort != nil, false},
		{"tool_calls", s.Calls != nil, false},
		{"reasoning_content", s.Reasoning != nil, true},
		{"metrics", s.Metrics != nil, true},
	} {
		switch {
		case !field.isSet:
		case s.Source != sourceAgent:
			r.problemAt(field.name, "only allowed in steps with source agent, got %q", s.Source)
		case field.needsCall && s.LLMCalls != nil && *s.LLMCalls == 0:
			r.problemAt(field.name, "not allowed in a step with llm_call_count 0")
		}
	}
}

// ref checks that a reference is complete.
func (r *reader) ref(f *Ref) {
	if f.TrajectoryID == nil && f.Path == nil && (!r.lenient || f.SessionID == nil) {
		r.Report("trajectory_id or trajectory_path required; session_id is not sufficient")
	}
}

// imageTypes and audioTypes are the allowed media types. audioNames maps other names of
// media types to those in audioTypes.
var (
	imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	audioTypes = []string{
		"audio/wav", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/flac", "audio/webm", "audio/aiff",
	}
	audioNames = map[string]string{
		"audio/mp3": "audio/mpeg", "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
		"audio/m4a": "audio/mp4", "audio/x-m4a": "audio/mp4", "audio/x-aac": "audio/aac", "audio/x-flac": "audio/flac",
		"audio/x-aiff": "audio/aiff", "audio/aif": "audio/aiff",
	}
)

// content decodes a content, which is a string or a list of parts.
func (r *reader) content(raw json.RawMessage, v reflect.Value) bool {
	c := v.Addr().Interface().(*Content) //nolint:errcheck // the reader is registered for this type
	switch trajectories.JSONKind(raw) {
	case "a string":
		return r.Read(raw, &c.Text)
	case "a list":
		return r.Read(raw, &c.Parts)
	}
	return r.Report("a string or a list of parts expected, got %s", trajectories.JSONKind(raw))
}

// part checks the type of a part, and that the part has the field for its type and no
// other.
func (r *reader) part(p *Part) {
	kinds := []string{"text", "image"}
	if r.spec >= Spec18 {
		kinds = append(kinds, "audio")
	}
	if !slices.Contains(kinds, p.Type) {
		r.problemAt("type", "one of %s expected, got %.60q", strings.Join(kinds, ", "), p.Type)
		return
	}
	for _, field := range []struct {
		name           string
		isSet, allowed bool
	}{{"text", p.Text != nil, p.Type == "text"}, {"source", p.Source != nil, p.Type != "text"}} {
		switch {
		case field.allowed && !field.isSet:
			r.problemAt(field.name, "required in a part of type %s", p.Type)
		case field.isSet && !field.allowed:
			r.problemAt(field.name, "not allowed in a part of type %s", p.Type)
		}
	}
	if p.Source != nil {
		r.Within("source", func() { r.source(p.Source, p.Type) })
	}
}

// source checks the media type of a source in a part of the given kind. It replaces other
// names of audio types, and removes the duration of an image.
func (r *reader) source(s *Source, kind string) {
	allowed := imageTypes
	if kind == "audio" {
		allowed = audioTypes
		if name, ok := audioNames[strings.ToLower(s.MediaType)]; ok {
			s.MediaType = name
		}
	} else if s.Duration != nil {
		r.Within("duration_sec", func() { _ = r.allowUnknown(r.Path()) })
		s.Duration = nil
	}
	if !slices.Contains(allowed, s.MediaType) {
		r.problemAt("media_type", "one of %s expected, got %.60q", strings.Join(allowed, ", "), s.MediaType)
	}
}

// timestampReason validates a timestamp for schema.Reader.Formats.
func timestampReason(s string) string {
	if _, ok := parseTime(s); !ok {
		return fmt.Sprintf("a time of ISO 8601 expected, got %.60q", s)
	}
	return ""
}

// parseTime parses an ISO 8601 timestamp. Like Python, it accepts any character between
// date and time. A timestamp without a time zone is in UTC.
func parseTime(s string) (time.Time, bool) {
	dateLayout, timeLayouts := "2006-01-02", []string{"", "T15", "T15:04", "T15:04:05"}
	if len(s) > 8 && s[4] != '-' || len(s) == 8 {
		dateLayout, timeLayouts = "20060102", []string{"", "T15", "T1504", "T150405"}
	}
	if n := len(dateLayout); len(s) > n {
		_, size := utf8.DecodeRuneInString(s[n:])
		s = s[:n] + "T" + s[n+size:]
	}
	for _, layout := range timeLayouts {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
			at, err := time.Parse(dateLayout+layout+zone, s)
			if _, offset := at.Zone(); err == nil && at.Year() > 0 && max(offset, -offset) < 24*60*60 {
				return at.UTC(), true
			}
		}
	}
	return time.Time{}, false
}
