package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
)

// page returns the guide for users of mini-swe-agent.
func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../..", configs.MigrationGuide))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// table returns the code spans of the first and the last cell of each row below a
// heading.
func table(t *testing.T, heading string) [][2][]string {
	t.Helper()
	_, text, ok := strings.Cut(page(t), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var rows [][2][]string
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 2 || strings.HasPrefix(line, "|--") {
			continue
		}
		rows = append(rows, [2][]string{spans(cells[0]), spans(cells[len(cells)-1])})
	}
	if len(rows) < 3 {
		t.Fatalf("%d rows below %q", len(rows), heading)
	}
	return rows[1:]
}

var code = regexp.MustCompile("`([^`]+)`")

func spans(cell string) []string {
	var found []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		found = append(found, strings.ReplaceAll(m[1], "\x00", "|"))
	}
	return found
}

var quoted = regexp.MustCompile(`"([^"]*)"|(\S+)`)

// Every command of mini in the guide exists, is not hidden, and accepts the flags.
func TestMigrationGuideCommands(t *testing.T) {
	var commands []string
	for line := range strings.Lines(page(t)) {
		if strings.HasPrefix(line, "    mini ") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	for _, heading := range []string{"Commands", "Models", "Files", "Variables", "Verdicts"} {
		for _, row := range table(t, heading) {
			for _, span := range row[1] {
				if strings.HasPrefix(span, "mini ") {
					commands = append(commands, span)
				}
			}
		}
	}
	if len(commands) < 15 {
		t.Fatalf("only %d commands on the page", len(commands))
	}
	for _, line := range commands {
		var args []string
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			args = append(args, m[1]+m[2])
		}
		args = args[1:]
		if n := len(args); n > 0 && args[n-1] == "-o" {
			args = append(args, "FOLDER")
		}
		cmd, rest, err := NewRoot(app.New(t.Context(), cmdutil.Streams{})).Find(args)
		if err != nil || cmd.Hidden {
			t.Errorf("%s: hidden, or %v", line, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		settings, _ := cmd.Flags().GetStringArray("config") // not every command has it
		for _, setting := range settings {
			if _, err := configs.ReadArg(setting); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// Every flag of the harness in the guide has an answer, or is a flag of mini eval too.
func TestMigrationGuideHarnessFlags(t *testing.T) {
	named := map[string]bool{}
	for _, row := range table(t, "Verdicts") {
		for _, span := range row[0] {
			name, ok := strings.CutPrefix(strings.Fields(span)[0], "--")
			if !ok {
				continue
			}
			named[name] = true
			cmd, rest, err := NewRoot(app.New(t.Context(), cmdutil.Streams{})).Find([]string{"eval", "--" + name + "=1"})
			if err != nil {
				t.Fatal(err)
			}
			err = cmd.ParseFlags(rest)
			old, _ := configs.FindOldName("--" + name)
			if want := "--" + name + ": " + old.Why; err != nil && flagError(cmd, err).Error() != want {
				t.Errorf("--%s: %v, want %s", name, flagError(cmd, err), want)
			}
		}
	}
	for _, n := range configs.OldNames {
		if name, ok := strings.CutPrefix(n.Old, "--"); ok && !named[name] {
			t.Errorf("the page does not name --%s", name)
		}
	}
}

// mini accepts both forms of the guide.
func TestMigrationGuidePrompts(t *testing.T) {
	base, err := configs.ReadBuiltin("swebench")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(field, text, engine string) (*configs.Resolved, error) {
		l, err := configs.ParseSetting("test", "agent."+field, text)
		if err != nil {
			t.Fatal(err)
		}
		e, err := configs.ParseSetting("test", "agent.template_engine."+field, engine)
		if err != nil {
			t.Fatal(err)
		}
		return configs.Merge(base, l, e)
	}
	for _, row := range table(t, "Prompts") {
		jinja, goForm := row[0][0], row[1][0]
		field := "observation_template"
		if strings.Contains(goForm, ".error") || strings.Contains(goForm, "n_actions") {
			field = "format_error_template"
		}
		if strings.Contains(goForm, "range") || strings.Contains(goForm, "{{- if") {
			continue // an incomplete template
		}
		for form, engine := range map[string]string{jinja: agent.EngineJinja, goForm: agent.EngineGo} {
			cfg, err := resolve(field, form, engine)
			if err == nil {
				_, err = agent.New(cfg.Agent)
			}
			if err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}

// mini has an answer for the keys on the left, and the keys on the right exist.
func TestMigrationGuideSettings(t *testing.T) {
	base, err := configs.ReadBuiltin("swebench")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table(t, "Settings") {
		for _, key := range row[0] {
			l, err := configs.ParseSetting("test", key, "x")
			var cfg *configs.Resolved
			if err == nil {
				cfg, err = configs.Merge(base, l)
			}
			isMoved := func(key string) bool {
				origin, ok := cfg.UserOrigin(key)
				return ok && origin.Layer == "test"
			}
			if err == nil && len(cfg.Notes()) == 0 && !slices.ContainsFunc(row[1], isMoved) || err != nil && strings.Contains(err.Error(), "did you mean") {
				t.Errorf("%s has no answer: %v", key, err)
			}
		}
		for _, key := range row[1] {
			if section, _, ok := strings.Cut(key, "."); !ok || section == "" {
				continue
			}
			if _, err := configs.KeysUnder(key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
}

func TestMigrationGuideVariables(t *testing.T) {
	text := page(t)
	for _, n := range configs.OldNames {
		if name, ok := strings.CutPrefix(n.Old, "$"); ok && !strings.Contains(text, "`"+name+"=") {
			t.Errorf("the page does not name %s", name)
		}
	}
	for _, row := range table(t, "Variables") {
		for _, span := range row[0] {
			name, _, _ := strings.Cut(span, "=")
			if _, known := configs.FindOldName("$" + name); !known && !configs.ProviderVariable.MatchString(name) {
				t.Errorf("%s is on the page, and mini does not know it", name)
			}
		}
	}
}
