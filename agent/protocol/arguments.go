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

// maxArguments bounds the arguments that are parsed, in bytes. The longest
// command fits even with every byte escaped.
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

// commandArgument returns the value of "command" in arguments, a JSON object
// that must have no other key.
func commandArgument(arguments string) (json.RawMessage, error) {
	d := json.NewDecoder(strings.NewReader(arguments))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, notObjectError(err)
	}
	var command json.RawMessage
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
		case key == wrapKey:
			return nil, wrappedArgumentsError(value)
		case key != "command":
			return nil, fmt.Errorf("the tool has no argument %.80q; the only one is command", key)
		case command != nil:
			return nil, errors.New("the argument command is there twice")
		}
		command = value
	}
	if _, err := d.Token(); err != nil {
		return nil, notObjectError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the arguments are no JSON object: there is more after its end")
	}
	if command == nil {
		return nil, errors.New("the argument command is missing")
	}
	return command, nil
}

// wrappedArgumentsError returns the original error of arguments that were
// wrapped when they were recorded (see wrapArguments). A resumed attempt thus
// gives the model the same message.
func wrappedArgumentsError(value json.RawMessage) error {
	var arguments string
	if json.Unmarshal(value, &arguments) == nil {
		if _, err := commandArgument(arguments); err != nil {
			return err
		}
	}
	return fmt.Errorf("the tool has no argument %q; the only one is command", wrapKey)
}

// notObjectError returns an error that says why arguments are not a JSON
// object. Its length is bounded because JSON errors quote the text.
func notObjectError(err error) error {
	switch {
	case err == nil:
		return errors.New("the arguments are no JSON object")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the arguments are no JSON object: they end too early")
	}
	return fmt.Errorf("the arguments are no JSON object: %.200s", err.Error())
}

// decodeCommand decodes and checks the value of "command".
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

// hasLoneSurrogate reports whether the JSON text has an escaped half of a
// surrogate pair. Such a half decodes to U+FFFD, which the JSON text itself
// does not contain.
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
