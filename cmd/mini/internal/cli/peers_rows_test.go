package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/minibench/mini/configs"
)

// peerRow is a row of the guide for users of mini-swe-agent: what they type, the answer of mini, and
// the code spans that explain it.
type peerRow struct {
	line, answer string
	spans        []string
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// peerRows returns the rows of the tables with three columns in the guide.
func peerRows(t *testing.T) []peerRow {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../..", configs.MigrationGuide))
	if err != nil {
		t.Fatal(err)
	}
	var rows []peerRow
	for text := range strings.Lines(string(data)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), "|")
		first := codeSpan.FindStringSubmatch(cells[0])
		if len(cells) != 3 || first == nil {
			continue
		}
		row := peerRow{line: first[1], answer: strings.TrimSpace(cells[1])}
		for _, span := range codeSpan.FindAllStringSubmatch(cells[2], -1) {
			row.spans = append(row.spans, span[1])
		}
		rows = append(rows, row)
	}
	return rows
}

// script returns a script that runs the row's line and checks the answer. Lines run in a folder with
// scripted replies; batches show their plan only.
func (r peerRow) script() (string, error) {
	program, _, _ := strings.Cut(r.line, " ")
	if name, _, isVariable := strings.Cut(program, "="); isVariable {
		return r.variableScript(name)
	}
	var args, expected string
	has := func(flag string) bool { return strings.Contains(r.line, flag) }
	callsModel := true
	switch {
	case has("swebench"):
		if r.answer != "message" {
			args += " --dry-run"
		}
		if !has("--environment-class") {
			args += " --environment-class local --empty-folder"
		}
	case strings.HasPrefix(r.line, "mini ") || strings.HasPrefix(r.line, "mini-swe-agent "):
		if !has("-y") {
			args += " -y"
		}
		if !has("--exit-immediately") {
			args += " --exit-immediately"
		}
	default:
		callsModel = false
	}
	if callsModel && !has("--model-class") && (!has("-m ") || has("mini -t")) {
		args += " --model-class scripted -c model.replies=replies.yaml"
	}
	switch r.answer {
	case "works":
		expected = "! stderr '^mini: running'\n"
	case "alias":
		expected = fmt.Sprintf("stderr '^mini: running %s( |$)'\n", quoteMeta(r.spans[0]))
		switch {
		case strings.HasPrefix(r.spans[0], "mini config set "): // values are not shown
			expected = "stderr '^mini: running mini config set model.model_name$'\n"
		case !strings.HasPrefix(r.spans[0], "mini "): // of a flag's value
			expected = fmt.Sprintf("stderr '^mini: .*%s'\n", quoteMeta(r.spans[0]))
		}
	case "message":
		expected = fmt.Sprintf("stderr '%s'\n", quoteMeta(r.spans[0]))
	default:
		return "", fmt.Errorf("%s: the answer %q is none of works, alias, message", r.line, r.answer)
	}
	prefix := ""
	if r.answer == "message" || strings.HasSuffix(r.line, "config setup") || strings.HasSuffix(r.line, "config edit") { // these need a terminal
		prefix = "! "
	}
	return prefix + "exec " + strings.ReplaceAll(r.line, `"`, "'") + args + "\n" + expected, nil
}

// variableScript is the script of a variable: a setting has it as its origin, a message names it,
// and others change nothing.
func (r peerRow) variableScript(name string) (string, error) {
	set := "env " + r.line + "\n"
	key := ""
	if len(r.spans) > 0 {
		key = r.spans[0]
	}
	batch := "exec mini bench --subset rows.jsonl --dry-run --environment-class local --model-class scripted -c model.replies=replies.yaml\n"
	switch {
	case r.answer == "message":
		return set + batch + fmt.Sprintf("stderr '^mini: note: %s .*%s'\n", name, quoteMeta(key)), nil
	case r.answer != "works":
		return "", fmt.Errorf("%s: the answer %q is neither works nor message", r.line, r.answer)
	case name == "MSWEA_MINI_CONFIG_PATH":
		return set + "exec mini config show task agent.step_limit\nstdout 'step_limit: 17 # mini.yaml:1'\n", nil
	case name == "MSWEA_CONFIG_DIR":
		return set + "exec mini config show task agent.step_limit -c team\nstdout 'step_limit: 18 # configs/team.yaml:1'\n", nil
	case name == "MSWEA_GLOBAL_CONFIG_DIR":
		return set + "exec mini config show task model.model_name\nstdout 'model_name: from-file # configs/.env: MSWEA_MODEL_NAME'\n", nil
	case configs.IsVariable(strings.ReplaceAll(key, ".", "_")) && strings.Contains(key, "."):
		return set + fmt.Sprintf("exec mini config show bench %s\nstdout '# %s$'\n", key, name), nil
	}
	return set + batch + "! stderr note\n", nil
}

// quoteMeta returns a regular expression that matches text, for a script between single quotes.
func quoteMeta(text string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(text), "'", "''")
}

const peerFiles = `
-- replies.yaml --
- |
  ` + "```bash" + `
  echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT
  ` + "```" + `
-- rows.jsonl --
{"instance_id":"a","problem_statement":"p"}
-- mini.yaml --
agent: {step_limit: 17}
-- runs/a.traj.json --
{"trajectory_format":"mini-swe-agent-1.1","instance_id":"a","info":{"exit_status":"Submitted","submission":""},
"messages":[{"role":"user","content":"p"},{"role":"assistant","content":"done"}]}
-- configs/team.yaml --
agent: {step_limit: 18}
-- configs/.env --
MSWEA_MODEL_NAME=from-file
`

// TestMigrationGuideRows runs every line of mini-swe-agent in the guide and checks that mini answers
// as the guide says.
func TestMigrationGuideRows(t *testing.T) {
	dir := t.TempDir()
	rows := peerRows(t)
	for i, row := range rows {
		script, err := row.script()
		if err != nil {
			t.Error(err)
			continue
		}
		files := peerFiles
		if strings.Contains(row.line, "-c mini.yaml") || strings.Contains(row.line, "--config mini.yaml") { // the name, not the file
			files = strings.Replace(files, "-- mini.yaml --", "-- other.yaml --", 1)
		}
		// The name of a script is that of a folder; the line is in the script.
		name := fmt.Sprintf("row-%02d.txtar", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("# "+row.line+"\n"+script+files), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scripts(t, dir, map[string]string{
		"HF_ENDPOINT": newTestHub(t, "image:1").URL, "XDG_CACHE_HOME": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "HF_HUB_CACHE": "", "HF_HOME": "",
		"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OPENROUTER_API_KEY": "k", "OLLAMA_HOST": closedAddress, "EDITOR": "false",
	})
}

// The guide names every flag, command, variable and class of mini-swe-agent 2.4.6.
func TestMigrationGuideIsComplete(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("../../../..", configs.MigrationGuide))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(`
		mini-swe-agent mini-extra mini-e swebench swebench-single programbench inspector setup set unset edit
		-m --model-class --agent-class --environment-class -t --task -y --yolo -l --cost-limit -c --config -o --output --exit-immediately
		--subset --split --slice --filter --shuffle -w --redo-existing -i --no-reasoning -v
		MSWEA_MODEL_NAME MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT MSWEA_GLOBAL_COST_LIMIT MSWEA_GLOBAL_CALL_LIMIT MSWEA_MINI_CONFIG_PATH
		MSWEA_CONFIG_DIR MSWEA_GLOBAL_CONFIG_DIR MSWEA_COST_TRACKING MSWEA_CONFIGURED MSWEA_SILENT_STARTUP MSWEA_INSPECTOR_STYLE_PATH
		MSWEA_DOCKER_EXECUTABLE LITELLM_MODEL_REGISTRY_PATH MSWEA_SINGULARITY_EXECUTABLE MSWEA_BUBBLEWRAP_EXECUTABLE MSWEA_DEFAULT_RUN
		litellm litellm_textbased litellm_response openrouter openrouter_textbased openrouter_response portkey portkey_response requesty
		deterministic RouletteModel InterleavingModel docker local bubblewrap singularity contree swerex_docker swerex_modal default interactive
		swebench.yaml swebench_backticks swebench_xml swebench_modal mini_textbased.yaml default.yaml mini.yaml programbench.yaml
		.config/mini-swe-agent/.env last_mini_run.traj.json preds.json minisweagent.log`) {
		if !regexp.MustCompile(`(?:^|[^\w-])` + regexp.QuoteMeta(name) + `(?:[^\w-]|$)`).Match(data) {
			t.Errorf("the guide does not name %s", name)
		}
	}
}
