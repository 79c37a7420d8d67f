package fake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/agnivade/levenshtein"
	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/lazyregexp"
)

// Plan is what goes wrong, and when. The first rule that fits a request is
// what happens to it.
//
//	seed: 7
//	rules:
//	  - {requests: [1, 2], fault: rate-limit, retry_after: 20s, retry_after_as: date}
//	  - {instance: django__django-11099, step: 3, fault: cut}
//	  - {probability: 5%, faults: [server-error, reset, stall], wait: 2s}
type Plan struct {
	// Seed makes other choices of probability. They depend on the seed, the
	// instance, the step and how often that was asked, and on nothing else:
	// not on the order in which a batch's requests come.
	Seed  uint64 `yaml:"seed"`
	Rules []Rule `yaml:"rules"`
}

// Rule gives a fault to the requests for which all that it says is true.
type Rule struct {
	Requests    []int       `yaml:"requests"` // by number, from 1
	Instance    string      `yaml:"instance"`
	Step        int         `yaml:"step"` // from 1
	API         string      `yaml:"api"`  // openai or anthropic
	Stream      *bool       `yaml:"stream"`
	Probability Probability `yaml:"probability"` // 0 is always
	// Times is how often the rule fits the same step of the same instance. 0 is
	// once where the rule names an instance or a step, so that trying again
	// helps, and always where it does not.
	Times int `yaml:"times"`

	Fault  string   `yaml:"fault"`
	Faults []string `yaml:"faults"` // one of them, by chance

	// What some faults heed; 0 is what Faults says.
	Status       int       `yaml:"status"`
	Body         string    `yaml:"body"`
	RetryAfter   Duration  `yaml:"retry_after"`
	RetryAfterAs RetryForm `yaml:"retry_after_as"`
	Wait         Duration  `yaml:"wait"`
	Size         Size      `yaml:"size"`
}

// ParsePlan reads a plan; name stands in errors.
func ParsePlan(name string, data []byte) (*Plan, error) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	p := &Plan{}
	if err := d.Decode(p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s%w", name, readable(err))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one YAML document, have more", name)
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// strange finds the line and the key in what the YAML library says of it.
var strange = lazyregexp.New(`^line (\d+): field (.*) not found in type `)

// readable is the first error of a YAML text, from the line on.
func readable(err error) error {
	if list, ok := errors.AsType[*yaml.TypeError](err); ok && len(list.Errors) > 0 {
		first := list.Errors[0]
		if m := strange.FindStringSubmatch(first); m != nil {
			return fmt.Errorf(":%s: unknown key %.60q", m[1], m[2])
		}
		err = errors.New(first)
	}
	return fmt.Errorf(": %w", err)
}

// Validate returns the first thing that is wrong.
func (p *Plan) Validate() error {
	for i, r := range p.Rules {
		if err := r.Validate(); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// Validate returns the first thing that is wrong.
func (r Rule) Validate() error {
	for _, name := range r.all() {
		if _, ok := faultNamed(name); !ok {
			text := fmt.Sprintf("there is no fault %.60q", name)
			for _, f := range faults {
				if levenshtein.ComputeDistance(f.Name, clip(name)) <= 2 {
					text += "; did you mean " + f.Name + "?"
					break
				}
			}
			return errors.New(text)
		}
		if name == "status" && (r.Status < 200 || r.Status > 599) {
			return fmt.Errorf("the fault status needs a status from 200 to 599, not %d", r.Status)
		}
	}
	switch {
	case len(r.all()) == 0:
		return errors.New("no fault is named")
	case r.API != "" && r.API != "openai" && r.API != "anthropic":
		return fmt.Errorf("api: want openai or anthropic, have %.60q", r.API)
	case r.Step < 0 || r.Times < 0 || slices.ContainsFunc(r.Requests, func(n int) bool { return n < 1 }):
		return errors.New("requests and steps count from 1")
	case !(r.Probability >= 0 && r.Probability <= 1):
		return errors.New("a probability is from 0 to 1")
	case r.Wait < 0 || r.RetryAfter < 0 || r.Size < 0:
		return errors.New("times and sizes cannot be negative")
	case !slices.Contains([]RetryForm{"", RetrySeconds, RetryDate, RetryMillis}, r.RetryAfterAs):
		return fmt.Errorf("retry_after_as: want seconds, date or ms, have %.60q", r.RetryAfterAs)
	}
	return nil
}

func (r Rule) all() []string {
	if r.Fault == "" {
		return r.Faults
	}
	return append([]string{r.Fault}, r.Faults...)
}

func (p *Plan) instances() []string {
	var all []string
	for _, r := range p.Rules {
		if r.Instance != "" {
			all = append(all, r.Instance)
		}
	}
	return all
}
