package web

import (
	"fmt"
	"net/url"

	"github.com/minibench/mini/internal/text"
)

// Address returns the address of an instance in the first run that has it or, if step is not
// empty, of a step of the attempt that counts.
func (v *Viewer) Address(id, step string) (string, error) {
	for _, r := range v.runs {
		number, ok := r.number(id)
		if !ok {
			continue
		}
		if step == "" {
			return links{}.Instance(r.Number, number), nil
		}
		s, err := r.load()
		if err != nil {
			return "", err
		}
		in, _ := s.Run.Find(id)
		attempts := in.AllAttempts()
		if len(attempts) == 0 {
			continue
		}
		attempt := attempts[len(attempts)-1].Number
		if in.Result != nil {
			attempt = in.Result.Attempt
		}
		return links{}.Step(r.Number, number, attempt, step), nil
	}
	return "", fmt.Errorf("no run has the instance %s", text.Printable(id))
}

// AddParameter adds a parameter to the address of a page.
func AddParameter(page, name, value string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
