package delegate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/agent/tools"
)

// keys are those of a step.
var keys = []string{"task", "name", "skill", "profile", "json", "pass"}

// wanted says what should stand where a chain has something else, by the type
// that it is read into.
var wanted = map[string]string{
	"[]delegate.link": "a list of steps is needed here, each beginning with -",
	"delegate.link":   "a step with a task is needed here, as in - task: TEXT",
	"string":          "one text is needed here",
	"[]string":        "a list of texts is needed here",
}

var (
	unknownKey = regexp.MustCompile(`(?s)^line (\d+): field (.*) not found in type \S+$`)
	otherKind  = regexp.MustCompile(`(?s)^line (\d+): cannot unmarshal .* into (\S+)$`)
)

// inWords is the first mistake in a chain, as its author knows it.
func inWords(err error) string {
	var all *yaml.TypeError
	if !errors.As(err, &all) || len(all.Errors) == 0 {
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	text := all.Errors[0]
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("line %s: a step has no %.80q", m[1], m[2])
		if near := tools.Nearest(m[2], keys); near != "" {
			return text + fmt.Sprintf("; did you mean %q?", near)
		}
		return text + "; it has " + strings.Join(keys[:len(keys)-1], ", ") + " and " + keys[len(keys)-1]
	}
	if m := otherKind.FindStringSubmatch(text); m != nil {
		if what, ok := wanted[m[2]]; ok {
			return "line " + m[1] + ": " + what
		}
		return "line " + m[1] + ": this is of another kind than is needed here"
	}
	return text
}
