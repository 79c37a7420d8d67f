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

// passedText is a text that a child receives with its task, as a copy.
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

// readPassedTexts copies the values of --pass: the content of files in the
// sandbox, or the values themselves.
func readPassedTexts(ctx context.Context, c tools.Call, values []string) ([]passedText, error) {
	var all []passedText
	sum := 0
	for _, v := range values {
		p := passedText{text: v}
		if mayBeFileName(v) {
			text, found, err := readFile(ctx, c, v, maxPassed)
			if err != nil {
				return nil, err
			}
			if found {
				p = passedText{v, text}
			}
		}
		if sum += len(p.text); sum > maxPassed {
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

// fileTimeout bounds the reading of a file in the sandbox.
const fileTimeout = 30 * time.Second

// readFile reads a file in the sandbox with the rights of the calling command.
// It returns false if there is none.
func readFile(ctx context.Context, c tools.Call, name string, most int) (string, bool, error) {
	res, err := c.Environment.Execute(ctx, env.Command{
		Script: `[ -f "$MINI_FILE" ] || exit 66; exec head -c "$MINI_MOST" <"$MINI_FILE"`, Dir: c.Dir, Timeout: fileTimeout,
		Env:         map[string]string{"MINI_FILE": name, "MINI_MOST": fmt.Sprint(most + 1)},
		OutputLimit: max(env.MinOutputLimit, 4*most),
	})
	switch {
	case err != nil:
		return "", false, err
	case res.ExitCode == 66:
		return "", false, nil
	case res.ExitCode != 0:
		return "", false, fmt.Errorf("read %.200q: %.300s", name, strings.TrimSpace(strings.ToValidUTF8(string(res.Output), "\ufffd")))
	case len(res.Output) > most:
		return "", false, tools.Usagef("%.200q has more than %d bytes", name, most)
	case !utf8.Valid(res.Output):
		return "", false, tools.Usagef("%.200q is no text", name)
	}
	return string(res.Output), true, nil
}
