package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/runner/report"
)

// config is what the flags say. Nothing is served before all of it is right.
func (o *fakeOptions) config(s Streams) (fake.Config, error) {
	c := fake.Config{Models: o.models, Limits: o.limits}
	var err error
	if c.Script, err = o.script(); err != nil {
		return c, err
	}
	if c.Plan, err = o.readPlan(); err != nil {
		return c, err
	}
	if c.Price, err = o.readPrice(); err != nil {
		return c, err
	}
	if o.requireKey {
		c.CheckKey = func(key string) bool { return key != "" }
	}
	if o.verbose {
		c.Seen = func(r fake.Request) {
			_, _ = fmt.Fprintln(s.Err, report.Printable(fakeLine(r))) // only for people
		}
	}
	return c, nil
}

// fakeLine is a request in a line.
func fakeLine(r fake.Request) string {
	what := []string{strconv.Itoa(r.Number), r.API, r.Model, r.Instance, "step", strconv.Itoa(r.Step), string(r.Outcome), strconv.Itoa(r.Status)}
	if r.Stream {
		what = append(what, "stream")
	}
	if r.Limit != "" {
		what = append(what, "over the limit of "+r.Limit)
	}
	if r.Fault != "" {
		what = append(what, r.Fault)
	}
	return strings.Join(what, " ")
}

func (o *fakeOptions) script() (*scripted.Script, error) {
	if o.replies == "" {
		return scripted.Parse("the replies of fake-model", []byte(fakeReplies))
	}
	script, err := scripted.Load(o.replies)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("--replies: %s: no such file; it holds the replies, as YAML or JSON, or is a trajectory", o.replies)
	}
	return script, err
}

// maxPlan bounds the file of a plan, in bytes.
const maxPlan = 16 << 20

// readPlan puts the plan together: --fault first, then the file, then --faults.
func (o *fakeOptions) readPlan() (*fake.Plan, error) {
	p := &fake.Plan{}
	if o.plan != "" {
		info, err := os.Stat(o.plan)
		if errors.Is(err, os.ErrNotExist) {
			return nil, usagef("--plan: %s: no such file; docs/fake-model.md shows one", o.plan)
		}
		if err != nil {
			return nil, fmt.Errorf("--plan: %w", err)
		}
		if info.Size() > maxPlan {
			return nil, usagef("--plan: %s has %d bytes, allowed are %d", o.plan, info.Size(), maxPlan)
		}
		data, err := os.ReadFile(o.plan)
		if err != nil {
			return nil, fmt.Errorf("--plan: %w", err)
		}
		if p, err = fake.ParsePlan(o.plan, data); err != nil {
			return nil, err
		}
	}
	if o.seed != 0 {
		p.Seed = o.seed
	}
	var first []fake.Rule
	for _, text := range o.fault {
		name, at, _ := strings.Cut(text, "@")
		rule := fake.Rule{Fault: name}
		if err := rule.Validate(); err != nil {
			return nil, usagef("--fault %.60q: %w; see mini fake-model --list-faults", text, err)
		}
		for number := range strings.SplitSeq(at, ",") {
			n, err := strconv.Atoi(number)
			if at != "" && (err != nil || n < 1) {
				return nil, usagef("--fault %s: after @ come numbers of requests, as in %s@1,5", text, name)
			}
			if at != "" {
				rule.Requests = append(rule.Requests, n)
			}
		}
		first = append(first, rule)
	}
	p.Rules = append(first, p.Rules...)
	if o.faults != "" {
		chance, names, _ := strings.Cut(o.faults, ":")
		rule := fake.Rule{Faults: fake.Usual()}
		if err := rule.Probability.UnmarshalText([]byte(chance)); err != nil {
			return nil, usagef("--faults: %w", err)
		}
		if names != "" {
			rule.Faults = strings.Split(names, ",")
		}
		if err := rule.Validate(); err != nil {
			return nil, usagef("--faults: %w; see mini fake-model --list-faults", err)
		}
		if rule.Probability > 0 { // a rule without one is for all
			p.Rules = append(p.Rules, rule)
		}
	}
	return p, nil
}

func (o *fakeOptions) readPrice() (model.Price, error) {
	var p model.Price
	if o.price == "" {
		return p, nil
	}
	fields := []*float64{&p.Input, &p.Output, &p.Cached, &p.CacheWrite}
	texts := strings.Split(o.price, ",")
	if len(texts) < 2 || len(texts) > len(fields) {
		return p, usagef("--price: want 2 to 4 prices in US dollars per million tokens: input,output,cached,written")
	}
	for i, text := range texts {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(f >= 0 && f < 1e9) {
			return p, usagef("--price: %.60q is no price in US dollars", text)
		}
		*fields[i] = f
	}
	return p, nil
}
