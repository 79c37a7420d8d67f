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

// What follows are the rules that types do not say: what fields say of each other.

var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ATIF-v1\.(0|[1-9][0-9]?)$`) })

// version returns what is wrong with a version.
func (r *reader) version(s string) string {
	minor := -1
	if m := versionPattern().FindStringSubmatch(s); m != nil {
		minor, _ = strconv.Atoi(m[1])
	}
	switch {
	case 0 <= minor && minor <= int(r.edition):
	case minor >= 0 && r.lenient:
		r.newer = true
		r.notes = append(r.notes, fmt.Sprintf("the version %s is newer than what is known; it was read as 1.%d", s, r.edition))
	default:
		return fmt.Sprintf("ATIF-v1.0 to ATIF-v1.%d are known, got %.60q", r.edition, s)
	}
	return ""
}

// trajectory holds the parts of a trajectory against each other.
func (r *reader) trajectory(t *Trajectory) {
	if t.SchemaVersion == "" {
		t.SchemaVersion = Version
		r.notes = append(r.notes, "it does not say which version of the format it is; it was read as "+Version)
	}
	if len(t.Steps) == 0 {
		r.breach("steps", "at least one step is needed")
	}
	embedded := map[string]bool{}
	for i, sub := range t.Subagents {
		at := fmt.Sprintf("subagent_trajectories.%d.trajectory_id", i)
		switch {
		case sub.TrajectoryID == nil:
			r.breach(at, "an embedded trajectory needs one")
		case embedded[*sub.TrajectoryID]:
			r.breach(at, "%.60q is there twice", *sub.TrajectoryID)
		default:
			embedded[*sub.TrajectoryID] = true
		}
	}
	for i, s := range t.Steps {
		r.At(fmt.Sprintf("steps.%d", i), func() {
			if s.ID != int64(i+1) {
				r.breach("step_id", "%d is needed, steps count from 1 on; got %d", i+1, s.ID)
			}
			r.calls(s, embedded)
		})
	}
}

// calls looks at the ids of a step's tool calls, and of what answers them.
func (r *reader) calls(s Step, embedded map[string]bool) {
	strict := !r.lenient && r.edition >= Edition8
	ids := make(map[string]bool, len(s.Calls))
	for i, c := range s.Calls {
		if strict && ids[c.ID] {
			r.breach(fmt.Sprintf("tool_calls.%d.tool_call_id", i), "%.60q is there twice in this step", c.ID)
		}
		ids[c.ID] = true
	}
	for i, res := range s.results() {
		at := fmt.Sprintf("observation.results.%d.", i)
		if res.CallID != nil && !ids[*res.CallID] {
			r.breach(at+"source_call_id", "%.60q is no tool_call_id of this step", *res.CallID)
		}
		for k, f := range res.Refs {
			if strict && f.Path == nil && f.TrajectoryID != nil && !embedded[*f.TrajectoryID] {
				r.breach(fmt.Sprintf("%ssubagent_trajectory_ref.%d.trajectory_id", at, k),
					"%.60q is no embedded trajectory, and there is no trajectory_path", *f.TrajectoryID)
			}
		}
	}
}

func (s Step) results() []Result {
	if s.Observation == nil {
		return nil
	}
	return s.Observation.Results
}

// step holds the fields of a step against each other.
func (r *reader) step(s *Step) {
	for _, field := range []struct {
		name      string
		is, model bool // model: only a call of a model has it
	}{
		{"model_name", s.ModelName != nil, false},
		{"reasoning_effort", s.Effort != nil, false},
		{"tool_calls", s.Calls != nil, false},
		{"reasoning_content", s.Reasoning != nil, true},
		{"metrics", s.Metrics != nil, true},
	} {
		switch {
		case !field.is:
		case s.Source != sourceAgent:
			r.breach(field.name, "only steps of the source agent may have this, got %q", s.Source)
		case field.model && s.LLMCalls != nil && *s.LLMCalls == 0:
			r.breach(field.name, "a step with llm_call_count 0 may have none")
		}
	}
}

func (r *reader) ref(f *Ref) {
	if f.TrajectoryID == nil && f.Path == nil && (!r.lenient || f.SessionID == nil) {
		r.Wrong("trajectory_id or trajectory_path is needed; a session_id alone finds nothing")
	}
}

// imageTypes and audioTypes are the media that parts may have; audioNames are
// other words for some of them.
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

// content reads a text or a list of parts.
func (r *reader) content(raw json.RawMessage, v reflect.Value) bool {
	c := v.Addr().Interface().(*Content) //nolint:errcheck // it is registered for this type
	switch trajectories.KindOf(raw) {
	case "a string":
		return r.Read(raw, &c.Text)
	case "a list":
		return r.Read(raw, &c.Parts)
	}
	return r.Wrong("a string or a list of parts is needed, this is %s", trajectories.KindOf(raw))
}

func (r *reader) part(p *Part) {
	kinds := []string{"text", "image"}
	if r.edition >= Edition8 {
		kinds = append(kinds, "audio")
	}
	if !slices.Contains(kinds, p.Type) {
		r.breach("type", "one of %s is needed, got %.60q", strings.Join(kinds, ", "), p.Type)
		return
	}
	for _, field := range []struct {
		name    string
		is, may bool
	}{{"text", p.Text != nil, p.Type == "text"}, {"source", p.Source != nil, p.Type != "text"}} {
		switch {
		case field.may && !field.is:
			r.breach(field.name, "a part of the type %s needs this", p.Type)
		case field.is && !field.may:
			r.breach(field.name, "a part of the type %s may not have this", p.Type)
		}
	}
	if p.Source != nil {
		r.At("source", func() { r.source(p.Source, p.Type) })
	}
}

func (r *reader) source(s *Source, kind string) {
	allowed := imageTypes
	if kind == "audio" {
		allowed = audioTypes
		if name, ok := audioNames[strings.ToLower(s.MediaType)]; ok {
			s.MediaType = name
		}
	} else if s.Duration != nil {
		r.At("duration_sec", func() { _ = r.unknown(r.Path()) })
		s.Duration = nil
	}
	if !slices.Contains(allowed, s.MediaType) {
		r.breach("media_type", "one of %s is needed, got %.60q", strings.Join(allowed, ", "), s.MediaType)
	}
}

// timestamp returns what is wrong with a time.
func timestamp(s string) string {
	if _, ok := parseTime(s); !ok {
		return fmt.Sprintf("a time of ISO 8601 is needed, got %.60q", s)
	}
	return ""
}

// parseTime reads a time stamp of ISO 8601, with any one character between date
// and time as in Python. One without a zone is taken for UTC.
func parseTime(s string) (time.Time, bool) {
	dates, times := "2006-01-02", []string{"", "T15", "T15:04", "T15:04:05"}
	if len(s) > 8 && s[4] != '-' || len(s) == 8 {
		dates, times = "20060102", []string{"", "T15", "T1504", "T150405"}
	}
	if n := len(dates); len(s) > n {
		_, size := utf8.DecodeRuneInString(s[n:])
		s = s[:n] + "T" + s[n+size:]
	}
	for _, layout := range times {
		for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
			at, err := time.Parse(dates+layout+zone, s)
			if _, offset := at.Zone(); err == nil && at.Year() > 0 && max(offset, -offset) < 24*60*60 {
				return at.UTC(), true
			}
		}
	}
	return time.Time{}, false
}
