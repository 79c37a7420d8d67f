package fake

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/docker/go-units"
	"gopkg.in/yaml.v3"
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

// Duration is a time.Duration that YAML gives as 1m30s, or as seconds.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	if seconds, err := strconv.ParseFloat(string(text), 64); err == nil && seconds >= 0 && seconds < 1e9 {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf("%.60q is no time: want seconds, or 1m30s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Size is a number of bytes that YAML gives as 100MB, too.
type Size int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := units.RAMInBytes(string(text))
	if err != nil || n < 0 {
		return fmt.Errorf("%.60q is no size: want bytes, or 100MB", text)
	}
	*s = Size(n)
	return nil
}

// Probability is from 0 to 1; YAML gives it as 5%, too.
type Probability float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Probability) UnmarshalText(text []byte) error {
	digits, percent := strings.CutSuffix(string(text), "%")
	f, err := strconv.ParseFloat(digits, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return fmt.Errorf("%.60q is no probability: want 5%%, or 0.05", text)
	}
	*p = Probability(f)
	return nil
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
var strange = regexp.MustCompile(`^line (\d+): field (.*) not found in type `)

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

// place is where in a batch a request belongs.
type place struct {
	instance string
	step     int
}

// planner picks faults; its owner locks it.
type planner struct {
	plan  *Plan
	asked map[place]int
	given map[place]map[int]int // by rule
}

func newPlanner(p *Plan) *planner {
	return &planner{p, map[place]int{}, map[place]map[int]int{}}
}

// pick returns the fault of a request, and the rule with what it heeds.
func (p *planner) pick(r *Request) (Fault, Rule, bool) {
	if len(p.plan.Rules) == 0 || len(p.asked) >= maxSeen {
		return Fault{}, Rule{}, false
	}
	at := place{r.Instance, r.Step}
	p.asked[at]++
	for i, rule := range p.plan.Rules {
		if !rule.fits(r) {
			continue
		}
		times := rule.Times
		if times == 0 && (rule.Instance != "" || rule.Step != 0) {
			times = 1
		}
		if times > 0 && p.given[at][i] >= times {
			continue
		}
		chance := p.chance(i, at)
		if rule.Probability > 0 && chance.Float64() >= float64(rule.Probability) {
			continue
		}
		if p.given[at] == nil {
			p.given[at] = map[int]int{}
		}
		p.given[at][i]++
		names := rule.all()
		fault, _ := faultNamed(names[chance.IntN(len(names))]) // checked before
		return fault, rule.heeding(fault.usual), true
	}
	return Fault{}, Rule{}, false
}

func (p *planner) chance(rule int, at place) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %s", rule, p.asked[at], at.step, at.instance) // a hash never fails
	return rand.New(rand.NewPCG(p.plan.Seed, h.Sum64()))                          //nolint:gosec // G404: it is to be repeatable
}

func (r Rule) fits(q *Request) bool {
	return (len(r.Requests) == 0 || slices.Contains(r.Requests, q.Number)) &&
		(r.Instance == "" || r.Instance == q.Instance) &&
		(r.Step == 0 || r.Step == q.Step) &&
		(r.API == "" || r.API == q.API) &&
		(r.Stream == nil || *r.Stream == q.Stream)
}

// heeding fills in what the rule leaves open.
func (r Rule) heeding(usual Rule) Rule {
	if r.RetryAfter == 0 {
		r.RetryAfter = usual.RetryAfter
	}
	if r.Wait == 0 {
		r.Wait = usual.Wait
	}
	if r.Size == 0 {
		r.Size = usual.Size
	}
	return r
}
