package bench

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/dryrun"
	"github.com/minibench/mini/cmd/mini/internal/rows"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
)

// text returns the plan as text.
func (p plan) text() string {
	var s dryrun.PlanText
	line := s.Line
	s.WriteString("dry run: nothing is started, and no model is called\n\n")
	for i, e := range p.Datasets {
		line(dryrun.LineLabel(i, "dataset"), "%s", rows.FormatSource(e))
	}
	line("instances", "%s", instancesText(p))
	line("sandboxes", "%s, %s at once", p.Sandbox, text.Count(p.Workers, "instance"))
	if v := p.Verdicts; v != nil {
		line("verdicts", "%s", verdictsText(*v, p))
	}
	if p.Images.Distinct > 0 {
		line("images", "%s", dryrun.FormatImages(p.Images))
		line("disk", "%s", dryrun.FormatDisk(p.Images))
	}
	line("model", "%s", modelText(p.Model))
	if a := p.Capabilities; a != nil {
		if a.Profile != "" {
			line("profile", "%s", a.Profile)
		}
		line("abilities", "%s", a.text())
	}
	line("cost", "%s", costText(p.Cost, p.Missing))
	line("folder", "%s", p.Folder)
	if p.Obstacle != "" {
		line("problem", "the batch cannot start: %s", p.Obstacle)
	}

	s.WriteString("\ninstances, in order:\n")
	for i, in := range p.Instances {
		if s.Truncate(i, len(p.Instances)) {
			break
		}
		content := fmt.Sprintf("  %-40s %s", in.ID, in.Image)
		if in.Done {
			content = fmt.Sprintf("  %-40s has a result; not run again", in.ID)
		}
		s.WriteString(text.Printable(content) + "\n")
		for _, a := range in.Resumable {
			fmt.Fprintf(&s.Builder, "    resumes attempt %d after step %d if its settings are the same\n", a.Attempt, a.Step)
		}
	}
	if p.Prompts.ID == "" {
		return s.String()
	}
	fmt.Fprintf(&s.Builder, "\nprompts for %s:\n", text.Printable(p.Prompts.ID))
	for _, part := range []struct{ role, text string }{{"system", p.Prompts.System}, {"user", p.Prompts.Instance}} {
		fmt.Fprintf(&s.Builder, "\n--- %s ---\n%s\n", part.role, strings.TrimRight(cmdutil.Sanitize(part.text), "\n"))
	}
	return s.String()
}

// instancesText describes how many instances and attempts will run.
func instancesText(p plan) string {
	line := fmt.Sprintf("%d of %d", p.Selected, p.Rows)
	if p.Attempts > 1 {
		line += fmt.Sprintf("; %s each, %d of them to run", text.Count(p.Attempts, "attempt"), p.Missing)
	} else if p.Done > 0 {
		line += fmt.Sprintf("; %d have a result already, %d to run", p.Done, p.Selected-p.Done)
	}
	return line
}

// verdictsText describes how submissions will be evaluated.
func verdictsText(v verdictPlan, p plan) string {
	switch {
	case envopen.IsHostClass(p.Sandbox):
		return "none: they need containers"
	case v.Ungradable == p.Selected:
		return "none: " + v.Why
	}
	text := fmt.Sprintf("on each submission during the run, %s at once, network %s, %g s each", text.Count(v.Workers, "patch"), v.Network, v.Timeout)
	if v.Ungradable > 0 {
		text += fmt.Sprintf("; none for %d", v.Ungradable)
	}
	return text
}

// modelText describes a model or a route, and whether the key is set.
func modelText(m modelPlan) string {
	if m.Route != "" {
		var models []string
		for _, model := range m.Models {
			models = append(models, modelText(model))
		}
		return m.Route + " of " + strings.Join(models, "; ")
	}
	if m.Class == noModel {
		return "none: the agent is " + m.Name
	}
	if m.Class == "scripted" {
		return "none: the replies are scripted, and come from a file"
	}
	text := m.Name + ", class " + m.Class
	if m.Name == "" {
		text = "none is named, class " + m.Class
	}
	if m.BaseURL != "" {
		text += ", at " + m.BaseURL
	}
	if m.KeyPresent {
		return text + ", key from " + m.KeyEnv
	}
	return text + ", no key (" + m.KeyEnv + " is not set)"
}

// costText describes the maximum cost of a number of attempts.
func costText(c costPlan, attempts int) string {
	switch {
	case c.Ceiling == nil:
		return "not bounded: there is no cost limit (-l DOLLARS sets one)"
	case *c.Ceiling == 0 && c.PriceKnown:
		return "nothing: no model is called"
	}
	line := fmt.Sprintf("at most $%.2f for %s at $%.2f each, or $%.2f with all retries; the last call of an attempt may exceed its limit",
		*c.Ceiling, text.Count(attempts, "attempt"), c.LimitPerAttempt, *c.CeilingWithRetries)
	if !c.PriceKnown {
		return line + "; it holds only if the server reports costs, since no price of the model is known"
	}
	if c.PriceSource != "model.price" {
		line += "; prices by " + text.Printable(c.PriceSource)
	}
	return line
}
