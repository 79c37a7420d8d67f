//go:build full

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/env/docker/dockertest"
)

// TestTour runs every command of the tours in README.md and docs/tour.md on a
// terminal of 80x24. The hub and the model are servers on loopback; containers,
// images and files are real. The screens are in the test's artifacts
// (go test -run TestTour -artifacts).
func TestTour(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, newTour(t), 80, 24)
	for i, command := range tourCommands(t) {
		term.runCommand(t, i, command)
	}
}

// TestTourWithoutTerminal runs the same commands without a terminal. It is not a subtest,
// because go test starts subtests after all tests, and this one is long.
func TestTourWithoutTerminal(t *testing.T) {
	t.Parallel()
	place := newTour(t)
	for i, command := range tourCommands(t) {
		if strings.Contains(command, " replay ") {
			continue // other scripts test replay without a terminal
		}
		if strings.Contains(command, " -t ") {
			command += " -y" // no user can answer
		}
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = place.dir, place.env, &out, &out
		err := cmd.Run()
		saveArtifact(t, i, out.String())
		if err != nil && !isBusyDoctor(command, out.String()) {
			t.Errorf("$ %s\n%v\n%s", command, err, out.String())
		}
		if strings.ContainsAny(out.String(), "\x1b\r") {
			t.Errorf("$ %s\nprints what only a terminal understands:\n%q", command, out.String())
		}
	}
}

// newTour returns a folder for the tour, with servers for its hub and its model.
func newTour(t *testing.T) tourPlace {
	t.Helper()
	return newTourPlace(t, dockertest.HelperDir(t), map[string]string{
		"HF_ENDPOINT":     newTestHub(t, dockertest.Image(t)).URL,
		"OPENAI_BASE_URL": newOpenAI(t).URL + "/v1", "OPENAI_API_KEY": serverKey,
	})
}

// tourCommands returns the lines after a $ in the section "A tour" of README.md and
// in docs/tour.md, each command once. It omits commands that export a variable: the
// test sets them.
func tourCommands(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile("../../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, short, _ := strings.Cut(string(readme), "\n## A tour")
	short, _, _ = strings.Cut(short, "\n## ")
	full, err := os.ReadFile("../../../../docs/tour.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, tour := range []struct {
		page, text string
		least      int
	}{{"README.md", short, 3}, {"docs/tour.md", string(full), 10}} {
		found := 0
		for line := range strings.Lines(tour.text) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok || strings.HasPrefix(command, "export ") {
				continue
			}
			found++
			if !slices.Contains(commands, command) {
				commands = append(commands, command)
			}
		}
		if found < tour.least {
			t.Fatalf("%s has %d commands, want at least %d", tour.page, found, tour.least)
		}
	}
	return commands
}

// tourPlace is a folder with bin/mini, as in a clone of the project.
type tourPlace struct {
	dir  string
	temp string // folder for temporary files
	env  []string
}

func newTourPlace(t *testing.T, helper string, vars map[string]string) tourPlace {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "home/.config/mini/config.yaml")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "bin"), 0o755),
		os.Symlink(self, filepath.Join(dir, "bin/mini")),
		os.MkdirAll(filepath.Dir(config), 0o755),
		os.WriteFile(config, []byte("environment: {helper_dir: "+helper+"}\n"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	temp := tempFolder(t)
	p := tourPlace{dir: dir, temp: temp, env: []string{
		"TMPDIR=" + temp,
		"HOME=" + dir + "/home", "PATH=" + os.Getenv("PATH"), "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"), "LANG=C.UTF-8", "HISTFILE=", noRaceSleep,
	}}
	for name, value := range vars {
		p.env = append(p.env, name+"="+value)
	}
	return p
}

// tempFolder returns a folder for TMPDIR that all users can write to, so that mini does
// not report what it removes of other tests.
func tempFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") //nolint:usetesting // the paths of sockets have to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // mini has removed its own files
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	return dir
}

// saveArtifact saves the output of command i as an artifact of the test.
func saveArtifact(t *testing.T, i int, text string, more ...string) {
	t.Helper()
	name := fmt.Sprintf("%02d%s.txt", i+1, strings.Join(more, ""))
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// terminal is a tmux pane, whose content the test can read.
type terminal struct {
	socket        string
	columns, rows int
}

func newTerminal(t *testing.T, place tourPlace, columns, rows int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("MINI_REQUIRE_DOCKER") != "" {
			t.Fatal("tmux is missing: scripts/setup.sh test installs it")
		}
		t.Skip("tmux is missing: scripts/setup.sh test installs it")
	}
	term := &terminal{socket: filepath.Join(t.TempDir(), "tmux"), columns: columns, rows: rows}
	cmd := term.tmux(t.Context(), "-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows),
		"bash", "--norc", "--noprofile")
	cmd.Dir, cmd.Env = place.dir, append(place.env, `PS1=exit $? > `, "TERM=xterm-256color")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("start tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = term.tmux(context.Background(), "kill-server").Run() })
	term.run(t, "set-option", "-g", "history-limit", "5000")
	term.wait(t, prompt)
	return term
}

func (term *terminal) tmux(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "tmux", append([]string{"-S", term.socket}, args...)...)
}

func (term *terminal) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := term.tmux(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// prompt matches the end of the screen when the shell waits. It contains the exit code.
var prompt = regexp.MustCompile(`(?:^|\n)exit (\d+) >\s*$`)

// replayTimeout matches the report of a command that timed out in a run or in its replay,
// but not in both.
var replayTimeout = regexp.MustCompile(`recorded\s+a\s+timeout|a\s+timeout,\s+recorded`)

var noResponse = regexp.MustCompile(`no\s+(response|answer)\s+within`)

// isBusyDoctor reports whether mini doctor failed because a busy engine did not respond in
// time.
func isBusyDoctor(command, output string) bool {
	return strings.HasSuffix(command, "doctor") && noResponse.MatchString(output)
}

// tourTimeout is the maximum duration of a command of the tour.
const tourTimeout = 15 * time.Minute

// wait waits until the screen matches want, and returns the submatches.
func (term *terminal) wait(t *testing.T, want *regexp.Regexp) []string {
	t.Helper()
	return term.watch(t, want, func(string) {})
}

// watch is wait with a function that receives each screen.
func (term *terminal) watch(t *testing.T, want *regexp.Regexp, see func(screen string)) []string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(tourTimeout); ; <-tick.C {
		screen := term.run(t, "capture-pane", "-p")
		see(screen)
		if m := want.FindStringSubmatch(strings.TrimRight(screen, "\n ")); m != nil {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("the screen never came to %s:\n%s", want, screen)
		}
	}
}

// runCommand types a command, answers its questions with Enter, and checks its screens.
func (term *terminal) runCommand(t *testing.T, i int, command string) {
	t.Helper()
	term.run(t, "send-keys", "-R")
	term.run(t, "clear-history")
	term.run(t, "send-keys", "-l", command+"\n")
	var live string
	asked := 0
	answered := map[string]bool{}
	exit := term.watch(t, prompt, func(screen string) {
		if q := question.FindStringSubmatch(screen); q != nil && !answered[q[1]+q[2]] {
			answered[q[1]+q[2]] = true
			if q[1] == "Run this command?" {
				asked++
			}
			term.run(t, "send-keys", "Enter")
		}
		if term.run(t, "display-message", "-p", "#{alternate_on}") == "1" && strings.TrimSpace(screen) != "" {
			live = screen
		}
	})
	shown := term.history(t)
	saveArtifact(t, i, shown)
	// On a busy machine, a command of the demo may have timed out that does not time out
	// when it is replayed.
	timedOut := strings.Contains(command, "replay") && exit[1] == "3" && replayTimeout.MatchString(shown)
	if exit[1] != "0" && !timedOut && !isBusyDoctor(command, shown) {
		t.Errorf("$ %s\nended with %s:\n%s", command, exit[1], shown)
	}
	if strings.Contains(command, "bench") && !strings.Contains(command, "--dry-run") {
		saveArtifact(t, i, live, "-live")
		for _, want := range []string{" mini bench · ", " worker", " #  instance ", "Ctrl-C stops"} {
			if !strings.Contains(live, want) {
				t.Errorf("$ %s\nshowed no %q:\n%s", command, want, live)
			}
		}
		if n := 1 + strings.Count(live, "\n"); n != term.rows {
			t.Errorf("$ %s\nfilled %d rows of %d", command, n, term.rows)
		}
	}
	if strings.Contains(command, "--eval") && (!strings.Contains(live, " resolved") || !strings.Contains(shown, "4 of 5 instances resolved")) {
		t.Errorf("$ %s\nshowed no verdicts while it ran, or none at its end:\n%s\n%s", command, live, shown)
	}
	if state := term.run(t, "display-message", "-p", "#{alternate_on} #{cursor_flag}"); state != "0 1" {
		t.Errorf("$ %s\nleft the screen as %q (alternate, cursor), want 0 1", command, state)
	}
	if strings.Contains(command, " -t ") && asked != len(conversation) {
		t.Errorf("%d questions, want %d", asked, len(conversation))
	}
	for line := range strings.Lines(shown) { // wrapped lines are joined
		if n := len([]rune(strings.TrimRight(line, " \n"))); n > term.columns && !wide.MatchString(command) && !strings.Contains(line, command) {
			t.Errorf("$ %s\na line of %d columns:\n%s", command, n, line)
		}
	}
}

// question matches a question of a session: its text and the step.
var question = regexp.MustCompile(`(?m)^(Run this command\?|The model has submitted its work).*\n(?:.*\n)*?❯ Enter.*\n.* · (step \d+)`)

// wide matches commands whose output may have wider lines than the terminal: they print
// texts and paths unwrapped.
var wide = regexp.MustCompile(`show|mini clean|mini inspect| -t | -i |bench .*runs/first$`)

// history returns all output since the history was cleared. It joins wrapped lines.
func (term *terminal) history(t *testing.T) string {
	t.Helper()
	return term.run(t, "capture-pane", "-p", "-J", "-S", "-")
}
