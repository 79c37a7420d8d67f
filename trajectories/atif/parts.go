package atif

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

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

// content is a text or a list of parts.
func content(r *reader, v json.RawMessage, at *place) (c Content, ok bool) {
	switch trajectories.KindOf(v) {
	case "a string":
		c.Text, ok = text(r, v, at)
		return c, ok
	case "a list":
		c.Parts, ok = listOf(part)(r, v, at)
		return c, ok
	}
	r.wrong(at, "a string or a list of parts is needed, this is %s", trajectories.KindOf(v))
	return c, false
}

func part(r *reader, v json.RawMessage, at *place) (p Part, ok bool) {
	before := len(r.problems)
	o, ok := r.object(v, at)
	if !ok {
		return p, false
	}
	kinds := []string{"text", "image"}
	if r.audio {
		kinds = append(kinds, "audio")
	}
	p.Type = required(o, "type", oneOf(kinds...))
	p.Text = optional(o, "text", text)
	p.Source = optional(o, "source", func(r *reader, v json.RawMessage, at *place) (Source, bool) {
		return r.source(v, at, p.Type)
	})
	o.done()
	if len(r.problems) > before {
		return p, false
	}
	isText := p.Type == "text"
	if isText != (p.Text != nil) {
		r.wrong(at.in("text"), "%s", must(isText, p.Type))
	}
	if isText == (p.Source != nil) {
		r.wrong(at.in("source"), "%s", must(!isText, p.Type))
	}
	return p, len(r.problems) == before
}

func must(be bool, kind string) string {
	if be {
		return "a part of the type " + kind + " needs this"
	}
	return "a part of the type " + kind + " may not have this"
}

func (r *reader) source(v json.RawMessage, at *place, kind string) (s Source, ok bool) {
	o, ok := r.object(v, at)
	if !ok {
		return s, false
	}
	allowed := imageTypes
	if kind == "audio" {
		allowed = audioTypes
		s.Duration = optional(o, "duration_sec", number)
	}
	s.MediaType = required(o, "media_type", text)
	if name, ok := audioNames[strings.ToLower(s.MediaType)]; ok && kind == "audio" {
		s.MediaType = name
	}
	if s.MediaType != "" && !slices.Contains(allowed, s.MediaType) {
		r.wrong(at.in("media_type"), "one of %s is needed, got %.60q", strings.Join(allowed, ", "), s.MediaType)
	}
	s.Path = required(o, "path", text)
	o.done()
	return s, true
}
