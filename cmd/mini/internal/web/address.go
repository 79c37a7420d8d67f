package web

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/report"
)

// Address returns the address of an instance in the first run that has it or, if step is not
// empty, of a step of the attempt that counts. typed is the id, or a part that no other id of the run has.
func (v *Viewer) Address(typed, step string) (string, error) {
	var unknown *report.UnknownInstanceError
	for _, r := range v.all() {
		s, err := r.load()
		if err != nil {
			return "", err
		}
		var ids []string
		for _, in := range s.Run.Instances {
			ids = append(ids, in.ID)
		}
		id, ok := datasets.MatchID(ids, typed)
		if !ok {
			_, err := report.FindInstance(s.Run, typed)
			if u, ok := errors.AsType[*report.UnknownInstanceError](err); ok && (unknown == nil || len(unknown.Similar) == 0) {
				unknown = u
			}
			continue
		}
		in, _ := s.Run.Find(id)
		if step == "" {
			return links{}.Instance(r, id), nil
		}
		attempts := in.AllAttempts()
		if len(attempts) == 0 {
			continue
		}
		attempt := attempts[len(attempts)-1].Number
		if in.Result != nil {
			attempt = in.Result.Attempt
		}
		return links{}.Step(r, id, attempt, step), nil
	}
	if unknown != nil && (len(v.all()) == 1 || len(unknown.Similar) > 0) {
		return "", unknown
	}
	return "", fmt.Errorf("no run has the instance %s", text.Printable(typed))
}

// FirstRun returns the address of the first run.
func (v *Viewer) FirstRun() string { return links{}.Run(v.all()[0]) }

// OnlyAttempt returns the address of the only attempt; false if there are several or none.
func (v *Viewer) OnlyAttempt() (address string, ok bool) {
	if len(v.all()) != 1 {
		return "", false
	}
	s, err := v.all()[0].load()
	if err != nil || len(s.Run.Instances) != 1 {
		return "", false
	}
	attempts := s.Run.Instances[0].AllAttempts()
	if len(attempts) != 1 {
		return "", false
	}
	return links{}.Attempt(v.all()[0], s.Run.Instances[0].ID, attempts[0].Number), true
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
