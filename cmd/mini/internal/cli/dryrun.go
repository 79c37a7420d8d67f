package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/minibench/mini/runner/report"
)

// printPlan writes a plan for people.
func printPlan(w io.Writer, p plan) error {
	var s strings.Builder
	line := func(name, format string, args ...any) {
		for i, part := range report.Wrap(report.Printable(fmt.Sprintf(format, args...)), helpWidth-11) {
			fmt.Fprintf(&s, "%-10s %s\n", label(i, name), part)
		}
	}
	s.WriteString("dry run: nothing is started, and no model is called\n\n")
	for i, e := range p.Datasets {
		line(label(i, "dataset"), "%s", editionText(e))
	}
	line("instances", "%s", instancesText(p))
	line("sandboxes", "%s, %s at once", p.Sandbox, report.Count(p.Workers, "instance"))
	if v := p.Verdicts; v != nil {
		line("verdicts", "%s", verdictsText(*v, p))
	}
	if p.Images.Distinct > 0 {
		line("images", "%s", imagesText(p.Images))
		line("disk", "%s", diskText(p.Images))
	}
	line("model", "%s", modelText(p.Model))
	if a := p.Abilities; a != nil {
		if a.Profile != "" {
			line("profile", "%s", a.Profile)
		}
		line("abilities", "%s", a.text())
	}
	line("cost", "%s", costText(p.Cost, p.Missing))
	line("folder", "%s", p.Folder)
	if p.Obstacle != "" {
		line("BUT", "it would not start: %s", p.Obstacle)
	}

	s.WriteString("\ninstances, in order:\n")
	for i, in := range p.Instances {
		if i == maxPlanned && len(p.Instances) > maxPlanned+1 {
			fmt.Fprintf(&s, "  ... and %d more; --json lists them all\n", len(p.Instances)-i)
			break
		}
		text := fmt.Sprintf("  %-40s %s", in.ID, in.Image)
		if in.Done {
			text = fmt.Sprintf("  %-40s has a result, is left as it is", in.ID)
		}
		s.WriteString(report.Printable(text) + "\n")
		for _, a := range in.GoesOn {
			fmt.Fprintf(&s, "    goes on inside attempt %d, after step %d, if it was made with these settings\n", a.Attempt, a.Step)
		}
	}
	fmt.Fprintf(&s, "\nfirst words to the model about %s:\n", report.Printable(p.Prompts.ID))
	for _, part := range []struct{ role, text string }{{"system", p.Prompts.System}, {"user", p.Prompts.Instance}} {
		fmt.Fprintf(&s, "\n--- %s ---\n%s\n", part.role, strings.TrimRight(lines(part.text), "\n"))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// maxPlanned bounds the instances that a plan lists for people.
const maxPlanned = 20

// label says a name once for several lines.
func label(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

func instancesText(p plan) string {
	text := fmt.Sprintf("%d of %d", p.Selected, p.Rows)
	if p.Attempts > 1 {
		text += fmt.Sprintf("; %s each, %d of them to run", report.Count(p.Attempts, "attempt"), p.Missing)
	} else if p.Done > 0 {
		text += fmt.Sprintf("; %d have a result already, %d to run", p.Done, p.Selected-p.Done)
	}
	return text
}

func verdictsText(v verdictPlan, p plan) string {
	switch {
	case onHost(p.Sandbox):
		return "none: they need containers"
	case v.Ungradable == p.Selected:
		return "none: " + v.Why
	}
	text := fmt.Sprintf("on each submission as soon as it is there, %s at once, network %s, %g s each", report.Count(v.Workers, "patch"), v.Network, v.Timeout)
	if v.Ungradable > 0 {
		text += fmt.Sprintf("; none for %d", v.Ungradable)
	}
	return text
}

func imagesText(p imagePlan) string {
	if p.Problem != "" {
		return fmt.Sprintf("%d distinct; which are here is not known", p.Distinct)
	}
	text := fmt.Sprintf("%d distinct: %d here", p.Distinct, p.Local)
	if p.Local > 0 {
		text += fmt.Sprintf(" (%s, shared layers counted each time)", report.Size(p.LocalBytes))
	}
	return text + fmt.Sprintf(", %d to pull", p.Pull)
}

func diskText(p imagePlan) string {
	switch {
	case p.Problem != "":
		return "not known without the container engine; see mini doctor"
	case p.Pull == 0:
		return "no image is to be pulled; the run's own files take some MB an instance"
	}
	text := fmt.Sprintf("about %s for the images to pull", report.Size(p.PullBytes))
	if p.Unknown > 0 {
		text += " (a rough 0.5 GB each where no registry was asked or answered)"
	}
	if p.FreeBytes == nil {
		return text + "; mini doctor says what is free"
	}
	return text + fmt.Sprintf("; %s are free", report.Size(*p.FreeBytes))
}

func modelText(m modelPlan) string {
	if m.Route != "" {
		var models []string
		for _, one := range m.Models {
			models = append(models, modelText(one))
		}
		return m.Route + " of " + strings.Join(models, "; ")
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

func costText(c costPlan, attempts int) string {
	switch {
	case c.Ceiling == nil:
		return "not bounded: there is no cost limit (-l DOLLARS sets one)"
	case *c.Ceiling == 0 && c.PriceKnown:
		return "nothing: no model is called"
	}
	text := fmt.Sprintf("at most $%.2f, for %s at $%.2f each; $%.2f if each had to be tried again and again; and what the last calls cost",
		*c.Ceiling, report.Count(attempts, "attempt"), c.LimitPerAttempt, *c.CeilingOfTries)
	if !c.PriceKnown {
		return text + "; it holds only if the server reports costs, since no price of the model is known"
	}
	if c.PriceSource != "model.price" {
		text += "; prices by " + report.Printable(c.PriceSource)
	}
	return text
}
