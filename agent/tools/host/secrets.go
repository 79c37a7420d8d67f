package host

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/procgroup"
)

// redacted is the text that replaces a secret.
const redacted = "[secret]"

// redact replaces the secrets in a text, also in their JSON encoding. It
// replaces the longest first, because one secret may contain another.
func (t *Tool) redact(text string) string {
	for _, secret := range t.secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

// redactedOutput returns the program's output without secrets. If the end of
// the output was cut off, it also removes the beginning of a secret there.
func (t *Tool) redactedOutput(stdout *procgroup.HeadBuffer) string {
	text := t.redact(string(stdout.Data))
	if int64(len(stdout.Data)) == stdout.Size {
		return text
	}
	for _, secret := range t.secrets {
		for n := min(len(secret)-1, len(text)); n > 0; n-- {
			if rest, ok := strings.CutSuffix(text, secret[:n]); ok {
				text = rest
				break
			}
		}
	}
	return text
}

// redactedStderr returns the program's standard error without secrets. If the
// beginning was cut off, it also removes the end of a secret there.
func (t *Tool) redactedStderr(stderr *procgroup.TailBuffer) string {
	text, truncated := stderr.Text()
	if text = t.redact(text); !truncated {
		return text
	}
	for _, secret := range t.secrets {
		for n := min(len(secret)-1, len(text)); n > 0; n-- {
			if rest, ok := strings.CutPrefix(text, secret[len(secret)-n:]); ok {
				text = rest
				break
			}
		}
	}
	return text
}

// secretForms returns the secrets and their JSON encodings, longest first.
func secretForms(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		if secret = strings.TrimSpace(secret); secret == "" {
			continue
		}
		all = append(all, secret)
		if data, err := json.Marshal(secret); err == nil {
			all = append(all, string(data[1:len(data)-1]))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
