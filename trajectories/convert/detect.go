package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// format is what a piece of JSON looks like.
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

// isJournal says whether a first line is that of a journal, of any version.
func isJournal(first []byte) bool {
	var r struct {
		ID   int               `json:"id"`
		Type trajectories.Type `json:"type"`
	}
	return json.Unmarshal(first, &r) == nil && r.ID > 0 && r.Type == trajectories.TypeHeader
}

// formatOf tells formats apart by the names of fields. It does not look deeper
// than it must: what is wrong further down is an error of that format.
func formatOf(data []byte) format {
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
	case has("trajectory") && !has("messages") && asString(fields["trajectory"]) == "": // else it names a file
		return formatSWE
	case has("history"):
		if itemFormat(fields["history"]) == formatMessage {
			return formatSWE
		}
		return formatEvents
	case has("messages", "conversations"):
		if info := fields["info"]; has("messages") && mentions(info, "mini_version", "model_stats") {
			return formatMini
		}
		list := fields["messages"]
		if !has("messages") {
			list = fields["conversations"]
		}
		var items []map[string]json.RawMessage
		if itemFormat(list) == formatMessage || json.Unmarshal(list, &items) != nil || len(items) == 0 {
			return formatMessages // with what is wrong with the list for its reader to say
		}
	case has("role"), asString(fields["object"]) == "response", asString(fields["type"]) == "function_call_output":
		return formatMessage
	case has("source") && has("action", "observation", "kind"), has("kind", "observation") && has("id"):
		return formatEvent
	}
	return formatNone
}

func mentions(object json.RawMessage, names ...string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return false
	}
	return slices.ContainsFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
}

// itemFormat is what the first item of a list looks like.
func itemFormat(list json.RawMessage) format {
	d := json.NewDecoder(bytes.NewReader(list))
	if open, err := d.Token(); err != nil || open != json.Delim('[') || !d.More() {
		return formatNone
	}
	var item json.RawMessage
	if d.Decode(&item) != nil {
		return formatNone
	}
	return formatOf(item)
}

func asString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s) // else it is none
	return s
}

// document reads a file that is one JSON value.
func document(src source, data []byte, yield func(*File, error) bool) {
	if len(bytes.TrimSpace(data)) == 0 {
		return
	}
	if f := formatOf(data); f != formatRows {
		yield(readObject(src, f, data))
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		yield(nil, explain(err))
		return
	}
	if len(list) == 0 {
		yield(nil, fmt.Errorf("%w: an empty list", ErrUnknown))
		return
	}
	switch f := formatOf(list[0]); f {
	case formatMessage, formatEvent:
		yield(readList(src, f, list))
		return
	case formatRows:
		if itemFormat(list[0]) == formatEvent { // an action and its observation together
			yield(readList(src, formatEvent, list))
			return
		}
	}
	for i, item := range list {
		src.row = i + 1
		f, err := row(src, item)
		if err != nil {
			err = fmt.Errorf("[%d]: %w", i, err)
		}
		if !yield(f, err) {
			return
		}
	}
}

// row reads one conversation of several.
func row(src source, data []byte) (*File, error) {
	f := formatOf(data)
	if f != formatRows {
		return readObject(src, f, data)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, explain(err)
	}
	return readList(src, itemFormat(data), list)
}

// readObject is the one switch from a format to its reader.
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
	return nil, unknown(data)
}

func readList(src source, f format, list []json.RawMessage) (*File, error) {
	switch f {
	case formatMessage:
		return readMessageList(src, list)
	case formatEvent:
		return readEvents(src, list)
	}
	return nil, fmt.Errorf("%w: a list of neither messages nor events", ErrUnknown)
}

// unknown says what stands there instead.
func unknown(data []byte) error {
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
		return fmt.Errorf("%w: no object", ErrUnknown)
	case len(names) > 6:
		names = append(names[:6], "...")
	}
	return fmt.Errorf("%w: an object with %s", ErrUnknown, strings.Join(names, ", "))
}

// explain says what encoding/json found, without Go's type names. What stands
// around it, as the place, stays.
func explain(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return around(err, t, fmt.Errorf("%s is of the wrong type here", strings.TrimPrefix(t.Field+": "+kindOf(t.Value), ": ")))
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return around(err, s, fmt.Errorf("not JSON, or cut off (byte %d): %w", s.Offset, s))
	}
	return err
}

// around puts other words for the error within another one.
func around(err, within, words error) error {
	before, found := strings.CutSuffix(err.Error(), within.Error())
	if !found || before == "" {
		return words
	}
	return fmt.Errorf("%s%w", before, words)
}

func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, " ") // a number stands there itself
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
