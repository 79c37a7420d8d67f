package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// format is the detected format of a JSON value.
type format string

const (
	formatNone     format = ""
	formatMini     format = "mini-swe-agent"
	formatSWE      format = "swe-agent"
	formatATIF     format = "ATIF"
	formatEvents   format = "openhands"       // an object with a history of events
	formatMessages format = "openai-messages" // an object with messages
	formatMessage  format = "a message"
	formatEvent    format = "an event"
	formatRows     format = "a list" // of conversations
)

// isJournal reports whether a line is the header of a journal, of any version.
func isJournal(first []byte) bool {
	var r struct {
		ID   int               `json:"id"`
		Type trajectories.Type `json:"type"`
	}
	return json.Unmarshal(first, &r) == nil && r.ID > 0 && r.Type == trajectories.TypeHeader
}

// detectFormat detects the format by field names. It looks no deeper than necessary:
// the reader of the format reports errors in nested values.
func detectFormat(data []byte) format {
	data = bytes.TrimSpace(data)
	if bytes.HasPrefix(data, []byte("[")) {
		return formatRows
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return formatNone
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
	}
	switch {
	case has("trajectory_format"):
		return formatMini
	case strings.HasPrefix(asString(fields["schema_version"]), "ATIF"), has("steps") && has("agent"):
		return formatATIF
	case has("trajectory") && !has("messages") && asString(fields["trajectory"]) == "": // otherwise it is a file name
		return formatSWE
	case has("history"):
		if itemFormat(fields["history"]) == formatMessage {
			return formatSWE
		}
		return formatEvents
	case has("messages", "conversations"):
		if info := fields["info"]; has("messages") && hasField(info, "mini_version", "model_stats") {
			return formatMini
		}
		list := fields["messages"]
		if !has("messages") {
			list = fields["conversations"]
		}
		var items []map[string]json.RawMessage
		if itemFormat(list) == formatMessage || json.Unmarshal(list, &items) != nil || len(items) == 0 {
			return formatMessages // the reader reports what is wrong with the list
		}
	case has("role"), asString(fields["object"]) == "response", asString(fields["type"]) == "function_call_output":
		return formatMessage
	case has("source") && has("action", "observation", "kind"), has("kind", "observation") && has("id"):
		return formatEvent
	}
	return formatNone
}

func hasField(object json.RawMessage, names ...string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
}

// itemFormat returns the format of the first element of a list.
func itemFormat(list json.RawMessage) format {
	d := json.NewDecoder(bytes.NewReader(list))
	if open, err := d.Token(); err != nil || open != json.Delim('[') || !d.More() {
		return formatNone
	}
	var item json.RawMessage
	if d.Decode(&item) != nil {
		return formatNone
	}
	return detectFormat(item)
}

func asString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // empty if it is not a string
	return s
}

// readDocument reads a file that is one JSON value.
func readDocument(src source, data []byte, yield func(*File, error) bool) {
	if len(bytes.TrimSpace(data)) == 0 {
		return
	}
	if f := detectFormat(data); f != formatRows {
		yield(readObject(src, f, data))
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		yield(nil, explain(err))
		return
	}
	if len(list) == 0 {
		yield(nil, fmt.Errorf("%w: an empty list", ErrUnknownFormat))
		return
	}
	switch f := detectFormat(list[0]); f {
	case formatMessage, formatEvent:
		yield(readList(src, f, list))
		return
	case formatRows:
		if itemFormat(list[0]) == formatEvent { // pairs of an action and its observation
			yield(readList(src, formatEvent, list))
			return
		}
	}
	for i, item := range list {
		src.row = i + 1
		f, err := readRow(src, item)
		if err != nil {
			err = fmt.Errorf("[%d]: %w", i, err)
		}
		if !yield(f, err) {
			return
		}
	}
}

// readRow reads one of several conversations.
func readRow(src source, data []byte) (*File, error) {
	f := detectFormat(data)
	if f != formatRows {
		return readObject(src, f, data)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, explain(err)
	}
	return readList(src, itemFormat(data), list)
}

// readObject calls the reader of a format.
func readObject(src source, f format, data []byte) (*File, error) {
	switch f {
	case formatMini:
		return readMini(src, data)
	case formatMessages:
		return readMessages(src, data)
	case formatSWE:
		return readSWE(src, data)
	case formatEvents:
		return readHistory(src, data)
	case formatATIF:
		return readATIF(src, data)
	case formatMessage, formatEvent:
		return readList(src, f, []json.RawMessage{data})
	}
	return nil, unknownFormat(data)
}

func readList(src source, f format, list []json.RawMessage) (*File, error) {
	switch f {
	case formatMessage:
		return readMessageList(src, list)
	case formatEvent:
		return readEvents(src, list)
	}
	return nil, fmt.Errorf("%w: neither a list of messages nor of events", ErrUnknownFormat)
}

// unknownFormat describes the data of an unknown format.
func unknownFormat(data []byte) error {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return explain(err)
	}
	var names []string
	for name := range fields {
		names = append(names, fmt.Sprintf("%.40q", name))
	}
	slices.Sort(names)
	switch {
	case err != nil:
		return fmt.Errorf("%w: not an object", ErrUnknownFormat)
	case len(names) > 6:
		names = append(names[:6], "...")
	}
	return fmt.Errorf("%w: an object with %s", ErrUnknownFormat, strings.Join(names, ", "))
}

// explain replaces an error of encoding/json by one without Go type names. It keeps
// the text before it, such as the position.
func explain(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return replaceError(err, t, fmt.Errorf("%s has the wrong type", strings.TrimPrefix(t.Field+": "+kindName(t.Value), ": ")))
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return replaceError(err, s, fmt.Errorf("invalid or truncated JSON (byte %d): %w", s.Offset, s))
	}
	return err
}

// replaceError replaces the inner error at the end of err by another one.
func replaceError(err, inner, replacement error) error {
	prefix, found := strings.CutSuffix(err.Error(), inner.Error())
	if !found || prefix == "" {
		return replacement
	}
	return fmt.Errorf("%s%w", prefix, replacement)
}

func kindName(value string) string {
	kind, _, _ := strings.Cut(value, " ") // numbers are followed by their value
	switch kind {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}
