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

// config returns the configuration that the flags describe. It validates these flags, but not
// --listen and --books.
func (o *fakeOptions) config(s cmdutil.Streams) (fake.Config, error) {
	c := fake.Config{Models: o.models, Limits: o.limits}
	var err error
	if c.Script, err = o.script(); err != nil {
		return c, err
	}
	if c.Plan, err = o.faultPlan(); err != nil {
		return c, err
	}
	if c.Price, err = o.parsePrice(); err != nil {
		return c, err
	}
	if o.requireKey {
		c.CheckKey = func(key string) bool { return key != "" }
	}
	if o.verbose {
		c.OnRequest = func(r fake.Request) {
			_, _ = fmt.Fprintln(s.Err, text.Printable(requestText(r))) // best effort
		}
	}
	return c, nil
}

// requestText describes a request in one line.
func requestText(r fake.Request) string {
	fields := []string{strconv.Itoa(r.Number), r.API, r.Model, r.Instance, "step", strconv.Itoa(r.Step), string(r.Outcome), strconv.Itoa(r.Status)}
	if r.Stream {
		fields = append(fields, "stream")
	}
	if r.Limit != "" {
		fields = append(fields, "over the limit of "+r.Limit)
	}
	if r.Fault != "" {
		fields = append(fields, r.Fault)
	}
	return strings.Join(fields, " ")
}

// script returns the replies of --replies, or else fakeReplies.
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

// faultPlan returns the rules of --fault, followed by the rule of --faults.
func (o *fakeOptions) faultPlan() (*fake.Plan, error) {
	p := &fake.Plan{Seed: o.seed}
	for _, flag := range o.faultRules {
		name, requests, _ := strings.Cut(flag, "@")
		rule := fake.Rule{Faults: []string{name}}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--fault %.60q: %w; see mini fake-model --list-faults", flag, err)
		}
		for number := range strings.SplitSeq(requests, ",") {
			n, err := strconv.Atoi(number)
			if requests != "" && (err != nil || n < 1) {
				return nil, usage.Errorf("--fault %s: after @ come numbers of requests, as in %s@1,5", flag, name)
			}
			if requests != "" {
				rule.Requests = append(rule.Requests, n)
			}
		}
		p.Rules = append(p.Rules, rule)
	}
	if o.faultShare != "" {
		chance, names, _ := strings.Cut(o.faultShare, ":")
		rule := fake.Rule{Faults: fake.TransientFaults()}
		var err error
		if rule.Probability, err = parseProbability(chance); err != nil {
			return nil, usage.Errorf("--faults: %w", err)
		}
		if names != "" {
			rule.Faults = strings.Split(names, ",")
		}
		if err := rule.Validate(); err != nil {
			return nil, usage.Errorf("--faults: %w; see mini fake-model --list-faults", err)
		}
		if rule.Probability > 0 { // a rule with probability 0 applies to every request
			p.Rules = append(p.Rules, rule)
		}
	}
	return p, nil
}

// parseProbability parses a percentage such as 5%, or a number such as 0.05.
func parseProbability(text string) (float64, error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(digits, 64)
	if isPercent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("%.60q is no probability: want 5%%, or 0.05", text)
	}
	return p, nil
}

// parsePrice parses --price.
func (o *fakeOptions) parsePrice() (model.Price, error) {
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
