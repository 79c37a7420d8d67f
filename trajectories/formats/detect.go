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

// format is the detected format of a JSON value: of a whole file, or of an element.
type format string

const (
	formatNone     format = ""
	formatMini     format = "mini-swe-agent"
	formatSWE      format = "swe-agent"
	formatATIF     format = "ATIF"
	formatEvents   format = "openhands"       // an object with a history of events
	formatMessages format = "openai-messages" // an object with a list of messages
	formatMessage  format = "a message"       // an element of a list of messages
	formatEvent    format = "an event"        // an element of a list of OpenHands events
)

// isJournal reports whether a line is the header of a journal of any version.
func isJournal(line []byte) bool {
	var r struct {
		ID   int               `json:"id"`
		Type trajectories.Type `json:"type"`
	}
	return json.Unmarshal(line, &r) == nil && r.ID > 0 && r.Type == trajectories.TypeHeader
}

// detectFormat detects the format of an object by its field names. It examines nested values
// only if necessary, since the reader of the format reports errors in them.
func detectFormat(data []byte) format {
	fields := objectFields(data)
	has := func(names ...string) bool { return hasField(fields, names...) }
	switch {
	case has("trajectory_format"):
		return formatMini
	case strings.HasPrefix(asString(fields["schema_version"]), "ATIF"), has("steps") && has("agent"):
		return formatATIF
	case has("trajectory") && !has("messages") && asString(fields["trajectory"]) == "": // a string would be a file name
		if elementFormat(fields["trajectory"]) == formatMessage {
			return formatMessages
		}
		return formatSWE
	case has("history"):
		if elementFormat(fields["history"]) == formatMessage {
			return formatSWE
		}
		return formatEvents
	case has("messages") && hasField(objectFields(fields["info"]), "mini_version", "model_stats"):
		return formatMini
	case has("messages", "conversations"):
		list := fields[messagesField(fields)]
		var items []map[string]json.RawMessage
		if elementFormat(list) == formatMessage || json.Unmarshal(list, &items) != nil || len(items) == 0 {
			return formatMessages // the reader reports errors in the list
		}
	case has("role"), has("from") && has("value"), asString(fields["object"]) == "response", asString(fields["type"]) == "function_call_output":
		return formatMessage
	case has("source") && has("action", "observation", "kind"), has("kind", "observation") && has("id"):
		return formatEvent
	}
	return formatNone
}

func isList(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) }

// elementFormat returns the format of the first element of a list. A pair of an action and
// its observation is an event.
func elementFormat(list json.RawMessage) format {
	first := firstElement(list)
	f := detectFormat(first)
	if f == formatNone && detectFormat(firstElement(first)) == formatEvent {
		return formatEvent
	}
	return f
}

// firstElement returns the first element of a list, or nil.
func firstElement(list json.RawMessage) (item json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(list))
	if open, err := d.Token(); err != nil || open != json.Delim('[') || !d.More() || d.Decode(&item) != nil {
		return nil
	}
	return item
}

// messagesField returns the name of the field with the messages of a conversation.
func messagesField(fields map[string]json.RawMessage) string {
	for _, name := range []string{"messages", "conversations"} {
		if hasField(fields, name) {
			return name
		}
	}
	return "trajectory"
}

// objectFields returns the fields of an object, or nil.
func objectFields(object json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return fields
}

// hasField reports whether an object has one of the fields.
func hasField(fields map[string]json.RawMessage, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
}

// asString returns the string in raw, or "" if raw is not a string.
func asString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// readDocument reads a file that is one JSON value, and yields its attempts.
func readDocument(src source, data []byte, yield func(*File, error) bool) {
	f := elementFormat(data)
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return
	case !isList(data), f == formatMessage, f == formatEvent:
		yield(readRow(src, data))
		return
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		yield(nil, explainJSON(err))
		return
	}
	if len(list) == 0 {
		yield(nil, fmt.Errorf("%w: an empty list", ErrUnknownFormat))
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

// readRow reads a value that is one conversation.
func readRow(src source, data []byte) (*File, error) {
	if isList(data) {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, explainJSON(err)
		}
		return readList(src, elementFormat(data), list)
	}
	switch f := detectFormat(data); f {
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
	return nil, unknownFormatError(data)
}

// readList reads a list of messages or events. f is the format of its elements.
func readList(src source, f format, list []json.RawMessage) (*File, error) {
	switch f {
	case formatMessage:
		return newBuilder(src, string(formatMessages)).messages(list, ending{})
	case formatEvent:
		return readEvents(src, list)
	}
	return nil, fmt.Errorf("%w: neither a list of messages nor of events", ErrUnknownFormat)
}

// unknownFormatError returns an error with the field names of data in an unknown format.
func unknownFormatError(data []byte) error {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return explainJSON(err)
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

// explainJSON replaces an error of encoding/json in err by one without Go type names. It
// keeps the text before that error, such as the position.
func explainJSON(err error) error {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return replaceError(err, typeErr, fmt.Errorf("%s has the wrong type", strings.TrimPrefix(typeErr.Field+": "+kindName(typeErr.Value), ": ")))
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return replaceError(err, syntax, fmt.Errorf("invalid or truncated JSON (byte %d): %w", syntax.Offset, syntax))
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

// kindName returns the kind of a JSON value, given UnmarshalTypeError.Value.
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
