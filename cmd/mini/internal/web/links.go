package web

import "fmt"

// links makes the addresses of pages: paths of the server, or fragments in a file. They consist of
// numbers, because ids and file names are untrusted.
type links struct {
	file bool
}

// Home returns the address of the list of runs.
func (l links) Home() string {
	if l.file {
		return "#home"
	}
	return "/"
}

// Run returns the address of a run.
func (l links) Run(run int) string {
	if l.file {
		return fmt.Sprintf("#r%d", run)
	}
	return fmt.Sprintf("/r/%d", run)
}

// Instance returns the address of an instance.
func (l links) Instance(run, instance int) string {
	if l.file {
		return fmt.Sprintf("#r%d/i%d", run, instance)
	}
	return fmt.Sprintf("/r/%d/i/%d", run, instance)
}

// Attempt returns the address of an attempt.
func (l links) Attempt(run, instance, attempt int) string {
	if l.file {
		return fmt.Sprintf("#r%d/i%d/a%d", run, instance, attempt)
	}
	return fmt.Sprintf("/r/%d/i/%d/a/%d", run, instance, attempt)
}

// Step returns the address of a step of an attempt; step is the name of its anchor.
func (l links) Step(run, instance, attempt int, step string) string {
	if l.file {
		return l.Attempt(run, instance, attempt) + "/s" + step
	}
	return l.Attempt(run, instance, attempt) + "?step=" + step + "#s" + step
}

// Compare returns the address of the comparison of all runs.
func (l links) Compare() string {
	if l.file {
		return "#compare"
	}
	return "/compare"
}

// CompareInstance returns the address of the comparison at an instance. The number is that of the
// first run that has it.
func (l links) CompareInstance(run, instance int) string {
	if l.file {
		return fmt.Sprintf("#compare/r%d/i%d", run, instance)
	}
	return fmt.Sprintf("/compare/%d/i/%d", run, instance)
}
