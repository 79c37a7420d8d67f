package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// maxArguments bounds the arguments that are parsed: the longest command with
// every byte escaped.
const maxArguments = 6*env.MaxScript + 1024

// parseCommand returns the command of a call. The error is worded for the
// model. An invalid call is rejected and never repaired, so that nothing runs
// that the model did not write.
func parseCommand(c model.ToolCall) (string, error) {
	if c.Name != ToolName {
		return "", fmt.Errorf("there is no tool %.80q; the only one is %s", c.Name, ToolName)
	}
	switch {
	case len(c.Arguments) > maxArguments:
		return "", fmt.Errorf("the arguments have %d bytes, too many; write long files in several parts", len(c.Arguments))
	case !utf8.ValidString(c.Arguments):
		return "", errors.New("the arguments are not valid UTF-8")
	}
	raw, err := commandArgument(c.Arguments)
	if err != nil {
		return "", err
	}
	return decodeCommand(raw)
}

// commandArgument returns the value of "command" in an object with no other
// key.
func commandArgument(arguments string) (json.RawMessage, error) {
	d := json.NewDecoder(strings.NewReader(arguments))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, notObjectError(err)
	}
	var found json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, notObjectError(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, notObjectError(err)
		}
		switch {
		case key == notJSON:
			return nil, wrappedArgumentsError(value)
		case key != "command":
			return nil, fmt.Errorf("the tool has no argument %.80q; the only one is command", key)
		case found != nil:
			return nil, errors.New("the argument command is there twice")
		}
		found = value
	}
	if _, err := d.Token(); err != nil {
		return nil, notObjectError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the arguments are no JSON object: there is more after its end")
	}
	if found == nil {
		return nil, errors.New("the argument command is missing")
	}
	return found, nil
}

// wrappedArgumentsError returns the error of arguments that were wrapped when
// they were recorded (see wrapArguments), so that a resumed attempt gives the
// same message.
func wrappedArgumentsError(value json.RawMessage) error {
	var arguments string
	if json.Unmarshal(value, &arguments) == nil {
		if _, err := commandArgument(arguments); err != nil {
			return err
		}
	}
	return fmt.Errorf("the tool has no argument %q; the only one is command", notJSON)
}

// notObjectError says why arguments are not a JSON object. It is bounded
// because JSON errors quote the text.
func notObjectError(err error) error {
	switch {
	case err == nil:
		return errors.New("the arguments are no JSON object")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the arguments are no JSON object: they end too early")
	}
	return fmt.Errorf("the arguments are no JSON object: %.200s", err.Error())
}

// decodeCommand decodes and checks the value.
func decodeCommand(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("the argument command must be a string, and it is %s", jsonKind(raw[0]))
	}
	var command string
	if err := json.Unmarshal(raw, &command); err != nil {
		return "", notObjectError(err)
	}
	switch {
	case strings.TrimSpace(command) == "":
		return "", errors.New("the command is empty")
	case len(command) > env.MaxScript:
		return "", fmt.Errorf("the command has %d bytes, and %d are allowed; write long files in several parts", len(command), env.MaxScript)
	case strings.ContainsRune(command, 0):
		return "", errors.New("the command has a NUL byte in it, which no shell takes")
	case hasLoneSurrogate(command, string(raw)):
		return "", errors.New("the command has half of a surrogate pair in it, which is no character")
	}
	return command, nil
}

// hasLoneSurrogate reports whether an escape was half of a surrogate pair: it
// decoded to U+FFFD, which the JSON text itself does not contain.
func hasLoneSurrogate(command, raw string) bool {
	return strings.ContainsRune(command, utf8.RuneError) &&
		!strings.ContainsRune(raw, utf8.RuneError) && !strings.Contains(strings.ToLower(raw), `\ufffd`)
}

func jsonKind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}
