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

// maxArguments bounds what is parsed: a command as long as may be, with every
// byte escaped.
const maxArguments = 6*env.MaxScript + 1024

// command takes the command out of a call. The error is in words for the
// model. Nothing is guessed: a call that is nearly right would run what nobody
// wrote.
func command(c model.Call) (string, error) {
	if c.Name != ToolName {
		return "", fmt.Errorf("there is no tool %.80q; the only one is %s", c.Name, ToolName)
	}
	switch {
	case len(c.Arguments) > maxArguments:
		return "", fmt.Errorf("the arguments have %d bytes, too many; write long files in several parts", len(c.Arguments))
	case !utf8.ValidString(c.Arguments):
		return "", errors.New("the arguments are not valid UTF-8")
	}
	raw, err := onlyArgument(c.Arguments)
	if err != nil {
		return "", err
	}
	return commandIn(raw)
}

// onlyArgument is the value of "command" in an object that has nothing else.
func onlyArgument(arguments string) (json.RawMessage, error) {
	d := json.NewDecoder(strings.NewReader(arguments))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, noObject(err)
	}
	var found json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, noObject(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, noObject(err)
		}
		switch {
		case key == notJSON:
			return nil, quotedProblem(value)
		case key != "command":
			return nil, fmt.Errorf("the tool has no argument %.80q; the only one is command", key)
		case found != nil:
			return nil, errors.New("the argument command is there twice")
		}
		found = value
	}
	if _, err := d.Token(); err != nil {
		return nil, noObject(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the arguments are no JSON object: there is more after its end")
	}
	if found == nil {
		return nil, errors.New("the argument command is missing")
	}
	return found, nil
}

// quotedProblem is what is wrong with arguments that an earlier reading put into
// an object (see quoted): an attempt that is said again goes as it went.
func quotedProblem(value json.RawMessage) error {
	var arguments string
	if json.Unmarshal(value, &arguments) == nil {
		if _, err := onlyArgument(arguments); err != nil {
			return err
		}
	}
	return fmt.Errorf("the tool has no argument %q; the only one is command", notJSON)
}

// noObject says why arguments are none, bounded: errors quote the text.
func noObject(err error) error {
	switch {
	case err == nil:
		return errors.New("the arguments are no JSON object")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the arguments are no JSON object: they end too early")
	}
	return fmt.Errorf("the arguments are no JSON object: %.200s", err.Error())
}

// commandIn checks the value itself.
func commandIn(raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", fmt.Errorf("the argument command must be a string, and it is %s", kind(raw[0]))
	}
	var command string
	if err := json.Unmarshal(raw, &command); err != nil {
		return "", noObject(err)
	}
	switch {
	case strings.TrimSpace(command) == "":
		return "", errors.New("the command is empty")
	case len(command) > env.MaxScript:
		return "", fmt.Errorf("the command has %d bytes, and %d are allowed; write long files in several parts", len(command), env.MaxScript)
	case strings.ContainsRune(command, 0):
		return "", errors.New("the command has a NUL byte in it, which no shell takes")
	case halfPair(command, string(raw)):
		return "", errors.New("the command has half of a surrogate pair in it, which is no character")
	}
	return command, nil
}

// halfPair says that an escape stands for no character: it was read as U+FFFD,
// which the arguments themselves do not have.
func halfPair(command, raw string) bool {
	return strings.ContainsRune(command, utf8.RuneError) &&
		!strings.ContainsRune(raw, utf8.RuneError) && !strings.Contains(strings.ToLower(raw), `\ufffd`)
}

func kind(first byte) string {
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
