package subagents

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/env"
)

// passedText is a text that a child receives with its task.
type passedText struct {
	file string // empty for a text that is not a file
	text string
}

func (p passedText) title() string {
	if p.file == "" {
		return ""
	}
	return fmt.Sprintf(" file=%q", p.file)
}

// readPassedTexts returns the texts for the values of --pass. For the name of a
// file in the sandbox the text is the file's content, for other values the
// value itself.
func readPassedTexts(ctx context.Context, c tools.Call, values []string) ([]passedText, error) {
	var all []passedText
	total := 0
	for _, value := range values {
		p := passedText{text: value}
		if mayBeFileName(value) {
			text, found, err := readFile(ctx, c, value, maxPassed)
			if err != nil {
				return nil, err
			}
			if found {
				p = passedText{value, text}
			}
		}
		if total += len(p.text); total > maxPassed {
			return nil, tools.Usagef("--pass: more than %d bytes in all; pass less, and name the files in the task", maxPassed)
		}
		all = append(all, p)
	}
	return all, nil
}

// mayBeFileName reports whether a text can be the name of a file.
func mayBeFileName(s string) bool {
	return s != "" && len(s) <= 1024 && !strings.ContainsAny(s, "\n\x00")
}

// fileTimeout bounds reading a file in the sandbox.
const fileTimeout = 30 * time.Second

// readFile reads a file of at most limit bytes in the sandbox, with the
// permissions of the calling command. It returns false if there is no such
// file.
func readFile(ctx context.Context, c tools.Call, name string, limit int) (string, bool, error) {
	res, err := c.Environment.Execute(ctx, env.Command{
		Script: `[ -f "$MINI_FILE" ] || exit 66; exec head -c "$MINI_MOST" <"$MINI_FILE"`, Dir: c.Dir, Timeout: fileTimeout,
		Env:         map[string]string{"MINI_FILE": name, "MINI_MOST": fmt.Sprint(limit + 1)},
		OutputLimit: max(env.MinOutputLimit, 4*limit),
	})
	switch {
	case err != nil:
		return "", false, err
	case res.ExitCode == 66:
		return "", false, nil
	case res.ExitCode != 0:
		return "", false, fmt.Errorf("read %.200q: %.300s", name, strings.TrimSpace(strings.ToValidUTF8(string(res.Output), "\ufffd")))
	case len(res.Output) > limit:
		return "", false, tools.Usagef("%.200q has more than %d bytes", name, limit)
	case !utf8.Valid(res.Output):
		return "", false, tools.Usagef("%.200q is no text", name)
	}
	return string(res.Output), true, nil
}
