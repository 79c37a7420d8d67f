package cli_test

import (
	"net/http"
	"strings"
)

// requestScenario is an attempt of a batch, or a session if it has steps.
type requestScenario struct {
	name     string
	class    string // of the model: openai or anthropic
	protocol string // text, xml or tools
	config   string // YAML
	row      string // more fields of the row
	replies  []modelReply
	// children are the replies to subagents, by a word of their task.
	children map[string][]modelReply
	// summaryFaults are the responses to the first requests for summaries.
	summaryFaults []modelFault
	// more are the arguments of further runs of the batch.
	more [][]string
	// truncated also resumes the journal, truncated after each of its records.
	truncated bool
	// branches are the steps from which mini replay continues the attempt, and an import of it.
	branches []string
	// steps are what the user of a session does, args more arguments. repository says that
	// the session is in a repository, and its patch is checked.
	steps      []step
	args       []string
	repository bool
}

// Texts in the prompts of the agent and of summaries, by which the server knows them.
const (
	mainMark    = "You are the main agent."
	summaryMark = "Summarize the steps."
)

// requestConfig is the configuration of all scenarios. Its prompts say nothing about the
// machine, but how many steps were made and what they cost.
const requestConfig = `
agent:
  system_template: |
    You are the main agent.{{range .tools}}
    - {{.name}}{{end}}
  instance_template: |
    Task: {{.task}}
  observation_template: |
    After {{.n_model_calls}} calls for {{printf "%.4f" .model_cost}}: {{.exception}} exit code {{.returncode}}
    {{.output}}
  summary_template: |
    Summarize the steps. The task: {{.task}}
    {{range .parts}}=== Part {{.number}}: steps {{.first_step}} to {{.last_step}} ===
    {{.text}}
    {{end}}
  cost_limit: 0
model: {max_tries: 3, price: {input: 100, output: 1000}}
`

const (
	submit = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch"
	// image is a PNG file.
	image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
	// once precedes what a command does in the first run only, not if it is run again.
	once = `test -e "$SCENARIO/once" || { : > "$SCENARIO/once"; `
)

var (
	busy = modelFault{http.StatusTooManyRequests, "slow down"}
	down = modelFault{http.StatusInternalServerError, "an error"}
	long = modelFault{http.StatusBadRequest, "This model's maximum context length is 900 tokens. However, your messages resulted in 1000 tokens."}
	bad  = modelFault{http.StatusBadRequest, "something is wrong"}
	// held gets no response until the client leaves.
	held = modelFault{}
)

// lines is a command with a long output.
func lines(word string) string { return "for i in {1..60}; do echo " + word + "; done" }

var requestScenarios = []*requestScenario{
	{
		name: "text", class: "openai", protocol: "text", truncated: true, branches: []string{"1", "3"},
		config: "model: {send_reasoning: true}\nagent: {max_consecutive_format_errors: 2}",
		replies: []modelReply{
			{text: "I look.", commands: []string{"echo one; false"}, thinking: "Hm.", faults: []modelFault{down, busy}},
			{text: "No command."},
			{text: "I look again.", commands: []string{"echo two"}},
			{text: "Too many.", commands: []string{"echo a", "echo b"}, thinking: "Two."},
			{text: "No command again."},
			{text: "Never asked for.", commands: []string{submit}},
		},
	},
	{
		name: "text-streamed", class: "anthropic", protocol: "text", config: "model: {stream: true, cache: 1h}",
		replies: []modelReply{
			{text: "I look.", commands: []string{"echo one"}, thinking: "Hm."},
			{text: "Cut off", finish: "max_tokens"},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "xml", class: "openai", protocol: "xml", config: "model: {stream: true}\nagent: {max_consecutive_format_errors: 2}",
		replies: []modelReply{
			{text: "No command."},
			{text: "One.", commands: []string{"echo '<one>' && echo '</one>'"}},
			{text: "No command."},
			{text: "Again none."},
		},
	},
	{
		name: "tools", class: "anthropic", protocol: "tools", truncated: true,
		config: "model: {stream: true}\npolicy: {rules: [{programs: printf, do: deny, reason: it is not wanted}]}",
		replies: []modelReply{
			{text: "Three.", commands: []string{"echo one", "printf two", "echo three"}, thinking: "Three?"},
			{text: "One is wrong.", calls: []modelCall{{"a", "bash", `{"command":"echo four"}`}, {"b", "python", `{"code":"5"}`}}},
			{text: "Done.", commands: []string{"echo six", submit, "echo seven"}},
		},
	},
	{
		name: "tools-openai", class: "openai", protocol: "tools", truncated: true,
		replies: []modelReply{
			{
				text: "Two calls.", commands: []string{"echo one", "echo two"}, noUsage: true,
				fields: map[string]any{"reasoning_details": []any{map[string]any{"type": "reasoning.text", "text": "Two?", "signature": "signed"}}},
			},
			{text: "Bad ids and arguments.", calls: []modelCall{{"", "bash", `{"command":"echo 1"}`}, {"x y", "ba sh", `{"command":`}, {"", "bash", ""}}, noUsage: true},
			{faults: []modelFault{{http.StatusBadRequest, "Failed to parse tool call arguments as JSON (Reply 3:)"}}},
			{text: "Done.", commands: []string{submit}, noUsage: true},
		},
	},
	{
		name: "elide", class: "openai", protocol: "text", truncated: true,
		config: `
agent:
  compaction: elide
  compaction_tokens: 400
  compaction_keep: 3
  images: {marker: 'IMG:'}
  tail_template: |
    {{range .goals}}Goal {{.id}} ({{.state}}): {{.text}}
    {{end}}{{range .errors}}Step {{.step}} failed: {{.command}}, {{.line}}
    {{end}}
model: {images: yes}
tools: {recall: true}
memory: {goals: true}
`,
		replies: []modelReply{
			{text: "Seen.", commands: []string{"echo " + image + " | base64 -d > a.png; echo IMG: a.png; mini-tool goal add 'find it'; false"}},
			{text: "Much.", commands: []string{lines("second")}},
			{text: "Recalled.", commands: []string{"mini-tool recall 2 --limit 3; mini-tool goal done 1"}},
			{text: strings.Repeat("I think long. ", 100), commands: []string{"echo four"}},
			{text: "Much again.", commands: []string{lines("fifth")}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "summarize", class: "anthropic", protocol: "tools", truncated: true, branches: []string{"2", "4"},
		config: "agent: {compaction: summarize, compaction_tokens: 400, compaction_keep: 4}",
		replies: []modelReply{
			{text: "Much.", commands: []string{lines("first"), lines("more")}, thinking: "Much?"},
			{text: "More.", commands: []string{lines("second")}},
			{text: "And more.", commands: []string{lines("third"), lines("fourth")}},
			{text: "And more again.", commands: []string{lines("fifth"), lines("sixth")}},
			{text: "At last.", commands: []string{lines("seventh")}},
			{text: "Done.", commands: []string{submit}},
		},
		summaryFaults: []modelFault{down, down, down},
	},
	{
		name: "rejected", class: "openai", protocol: "text", truncated: true,
		config: "agent: {compaction: summarize, compaction_tokens: 1000, compaction_keep: 4, tail_template: 'Mind the end.'}",
		replies: []modelReply{
			{text: "Much.", commands: []string{lines("first")}},
			{text: "More.", commands: []string{lines("second")}},
			{text: "Too long.", commands: []string{lines("third")}, faults: []modelFault{long}},
			{text: "Unknown.", commands: []string{"echo four"}, faults: []modelFault{bad}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "budget", class: "openai", protocol: "tools", truncated: true,
		config: "agent: {tail_template: 'You have made {{.n_model_calls}} calls.'}",
		args:   []string{"--total-calls", "1"}, more: [][]string{{"--total-calls", "2", "--resume-attempts"}, {"--resume-attempts"}},
		replies: []modelReply{
			{text: "One.", commands: []string{"echo one", "echo two"}},
			{text: "Two."},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "interrupted", class: "openai", protocol: "tools", truncated: true, more: [][]string{{"--resume-attempts"}},
		config: "run: {env_startup_command: echo start}",
		replies: []modelReply{
			{text: "Three calls.", commands: []string{"echo one", once + `kill -INT "$MINI"; sleep 60; }`, "echo three"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "sandbox-ends", class: "anthropic", protocol: "tools", truncated: true, args: []string{"--resume-attempts"},
		replies: []modelReply{
			{text: "Three calls.", commands: []string{"echo one", once + "kill -KILL $PPID; sleep 60; }", "echo three"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "subagents", class: "openai", protocol: "text", truncated: true,
		config: "agents: {enabled: true}\nagent: {step_limit: 7}",
		replies: []modelReply{
			{text: "One.", commands: []string{"mini-tool board set plan one && mini-tool delegate 'the sea of copy 00' && mini-tool board get plan"}},
			{text: "Two.", commands: []string{"mini-tool delegate 'the hill of copy 00'"}},
			{text: "Three.", commands: []string{"echo three"}},
			{text: "Done.", commands: []string{submit}},
		},
		children: map[string][]modelReply{
			"the sea":  {{text: "A child.", commands: []string{"echo sea; mini-tool board set plan two"}}, {text: "Its report.", commands: []string{"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo salt"}}},
			"the hill": {{text: "Another.", commands: []string{"echo hill"}}, {text: "No report.", commands: []string{"echo top"}}, {text: "Too late.", commands: []string{submit}}},
		},
	},
	{
		name: "images", class: "openai", protocol: "tools", config: "model: {images: yes}\nagent: {images: {marker: 'IMG:'}}",
		row: `,"image_assets":{"problem_statement":["data:image/png;base64,` + image + `"]}`,
		replies: []modelReply{
			{text: "Seen.", commands: []string{"echo " + image + " | base64 -d > a.png; echo IMG: a.png; echo IMG: none.png", "echo IMG: a.png"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "images-anthropic", class: "anthropic", protocol: "text", config: "model: {images: yes}\nagent: {images: {marker: 'IMG:'}}",
		row: `,"image_assets":{"problem_statement":["data:image/png;base64,` + image + `","data:image/png;base64,` + image + `"]}`,
		replies: []modelReply{
			{text: "Seen.", commands: []string{"echo " + image + " | base64 -d > a.png; echo IMG: a.png; echo IMG: none.png"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "limits", class: "openai", protocol: "text", truncated: true, config: "agent: {step_limit: 3, cost_limit: 0.05}",
		replies: []modelReply{
			{text: "One.", commands: []string{"echo one"}},
			{text: "Two.", commands: []string{"echo two"}},
			{text: "Three.", commands: []string{"echo three"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "window", class: "openai", protocol: "text", truncated: true, config: "model: {context_window: 330, context_reserve: 100}",
		replies: []modelReply{
			{text: "One.", commands: []string{lines("one")}},
			{text: "Two.", commands: []string{lines("two")}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "mcp", class: "anthropic", protocol: "text", config: "tools: {mcp: [{name: books, command: [mini-test-mcp]}], files: true}",
		replies: []modelReply{
			{text: "A book.", commands: []string{"mini-tool find --title 'the sea' --limit 3; mini-tool write a.txt sea; cat a.txt"}},
			{text: "Done.", commands: []string{submit}},
		},
	},
	{
		name: "session", class: "openai", protocol: "text", truncated: true,
		replies: []modelReply{
			{text: "One.", commands: []string{"echo one"}},
			{text: "Two.", commands: []string{"echo two > two"}},
			{text: "Three.", commands: []string{"echo three > three"}, faults: []modelFault{held}},
			{text: "Four.", commands: []string{"echo four > four"}},
			{text: "Done.", commands: []string{"true && " + submit}},
			{text: "Done again.", commands: []string{submit}},
			{text: "Done at last.", commands: []string{submit}}, // after a message at the end
		},
		steps: []step{
			{askConfirm, "leave it alone\r"},
			{askConfirm, "/u\r"},
			{askCommand, "echo own\r"},
			{askCommand, "/c\r"},
			{"Switched to confirm", "!until test -e held; do sleep 0.05; done"},
			{"", keyCtrlC},
			{askMessage, "again\r"},
			{askConfirm, " !echo mi''ne\r"},
			{"mine\n", ""},
			{askConfirm, keyEnter},
			{askConfirm, "/compact the names\r"},
			{"before the model's next step", ""},
			{askConfirm, keyEnter},
			{"conversation was compacted", ""},
			{askConfirm, keyEnter},
			{askNext, "more\r"},
			{askConfirm, keyEnter},
			{askNext, keyEnter},
		},
	},
	{
		name: "session-tools", class: "anthropic", protocol: "tools", truncated: true, repository: true,
		config: "model: {stream: true}\nagent: {submission: patch, step_limit: 2}", args: []string{"-y"},
		replies: []modelReply{
			{text: "Three calls.", commands: []string{"echo one", once + "echo so far; sleep 60; }", "echo three"}},
			{text: "A long one.", commands: []string{`echo waiting; until test -e "$SCENARIO/go"; do sleep 0.05; done`}},
			{text: "Which file?"},
			{text: "A wrong patch.", commands: []string{submit}},
			{text: "Wrong again.", commands: []string{submit}},      // the diff is submitted
			{text: "Done at last.", commands: []string{bareSubmit}}, // after a message at the end
		},
		steps: []step{
			{"so far", ""},
			{"so far", keyCtrlC},
			{askMessage, "try grep\r"},
			{"waiting", ""},
			{"waiting", "use tabs\r"},
			{"The model will get this", "!touch go"},
			{askLimit, "+6\r"},
			{"Which file?", ""},
			{askMessage, "/compact\r"},
			{"before the model's next step", ""},
			{askMessage, "the first\r"},
			{askNext, keyEnter},
		},
	},
	{
		name: "session-errors", class: "openai", protocol: "xml", truncated: true,
		config: "agent: {plain_reply: error, max_consecutive_format_errors: 2}", args: []string{"-y"},
		replies: []modelReply{
			{text: "No command."},
			{text: "Again none."},
			{text: "And none after a message."},
			{text: "Done at last.", commands: []string{submit}},
		},
		steps: []step{{"RepeatedFormatError", ""}},
	},
}
