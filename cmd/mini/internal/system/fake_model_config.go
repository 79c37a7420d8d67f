package system

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories/scripts"
)

// config is what the flags say. Nothing is served before all of it is right.
func (o *fakeOptions) config(s cmdutil.Streams) (fake.Config, error) {
	c := fake.Config{Models: o.models, Limits: o.limits}
	var err error
	if c.Script, err = o.script(); err != nil {
		return c, err
	}
	if c.Plan, err = o.faultPlan(); err != nil {
		return c, err
	}
	if c.Price, err = o.readPrice(); err != nil {
		return c, err
	}
	if o.requireKey {
		c.CheckKey = func(key string) bool { return key != "" }
	}
	if o.verbose {
		c.OnRequest = func(r fake.Request) {
			_, _ = fmt.Fprintln(s.Err, text.Printable(fakeLine(r))) // only for people
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
	script, err := scripts.Load(o.replies)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usage.Errorf("--replies: %s: no such file; it holds the replies, as YAML or JSON, or is a trajectory", o.replies)
	}
	return script, err
}

// faultPlan puts together what goes wrong: --fault first, then --faults.
func (o *fakeOptions) faultPlan() (*fake.Plan, error) {
	p := &fake.Plan{Seed: o.seed}
	for _, text := range o.fault {
		name, at, _ := strings.Cut(text, "@")
		rule := fake.Rule{Faults: []string{name}}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--fault %.60q: %w; see mini fake-model --list-faults", text, err)
		}
		for number := range strings.SplitSeq(at, ",") {
			n, err := strconv.Atoi(number)
			if at != "" && (err != nil || n < 1) {
				return nil, usage.Errorf("--fault %s: after @ come numbers of requests, as in %s@1,5", text, name)
			}
			if at != "" {
				rule.Requests = append(rule.Requests, n)
			}
		}
		p.Rules = append(p.Rules, rule)
	}
	if o.faults != "" {
		chance, names, _ := strings.Cut(o.faults, ":")
		rule := fake.Rule{Faults: fake.TransientFaults()}
		var err error
		if rule.Probability, err = probability(chance); err != nil {
			return nil, usage.Errorf("--faults: %w", err)
		}
		if names != "" {
			rule.Faults = strings.Split(names, ",")
		}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--faults: %w; see mini fake-model --list-faults", err)
		}
		if rule.Probability > 0 { // a rule without one is for all
			p.Rules = append(p.Rules, rule)
		}
	}
	return p, nil
}

// probability reads 5% or 0.05.
func probability(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if percent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("%.60q is no probability: want 5%%, or 0.05", text)
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
		return p, usage.Errorf("--price: want 2 to 4 prices in US dollars per million tokens: input,output,cached,written")
	}
	for i, text := range texts {
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(f >= 0 && f < 1e9) {
			return p, usage.Errorf("--price: %.60q is no price in US dollars", text)
		}
		*fields[i] = f
	}
	return p, nil
}
