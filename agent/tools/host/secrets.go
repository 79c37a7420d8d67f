package host

import (
	"encoding/json"
	"slices"
	"strings"
)

// hidden stands in the place of a secret.
const hidden = "[secret]"

// hide takes secrets out of a text, as they are and as JSON has them. The longest
// goes first: another may be a part of it.
func (t *Tool) hide(text string) string {
	for _, secret := range t.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// output is what the program printed, without secrets, nor the beginning of one at
// the place where it was cut off.
func (t *Tool) output(out *head) string {
	text := t.hide(string(out.data))
	if int64(len(out.data)) == out.size {
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

// errors is what it said aside, likewise, with the end of a secret in place of the
// beginning.
func (t *Tool) errors(errs *tail) string {
	text := t.hide(errs.String())
	if !errs.cut {
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

// forms are secrets as they are, and as JSON has them, the longest first.
func forms(secrets []string) []string {
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
