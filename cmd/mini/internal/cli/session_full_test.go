//go:build full && linux

package cli_test

import (
	"strings"
	"testing"
)

// TestTransitions tests every transition between the states of a session.
func TestTransitions(t *testing.T) {
	t.Parallel()
	testTransitions(t, []transition{
		{
			name: "a command that only submits is not asked about", replies: []string{bareSubmit}, unseen: askConfirm,
			steps: []step{{askNext, keyEnter}}, conversation: bareSubmit, decisions: "allow submission",
		},
		{
			name: "a command that only submits, in human mode", args: []string{"-c", "agent.mode=human"}, replies: []string{bareSubmit},
			steps: []step{{askCommand, bareSubmit + "\r"}, {askNext, keyEnter}}, conversation: "", unseen: askConfirm,
		},
		{
			name: "a command of the user at a confirmation", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, " !\r"},
				{"runs a command where", ""},
				{askConfirm, " !echo mi''ne\r"},
				{"mine\n", ""},
				{askConfirm, keyEnter},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ranOK + "\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "a command of the user, interrupted", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, " !echo so f''ar; sleep 60\r"},
				{"so far\n", keyCtrlC},
				{"interrupted", ""},
				{askConfirm, "n\r"},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\nrejection: The user did not let this command run.\ncommand: The user ran a command:\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "a command of the user that submits, in an interruption, in human mode and at the end", args: []string{"-y"},
			replies: []string{"echo so far; sleep 60", submitCommand, submitCommand},
			steps: []step{
				{"so far", ""},
				{"so far", " !false\r"},
				{"works only at a question", keyCtrlC},
				{askMessage, " !" + bareSubmit + "\r"},
				{askMessage, "/u\r"},
				{askCommand, " !true\r"},
				{askCommand, "/y\r"},
				{"Switched to", ""},
				{askNext, " !false\r"},
				{"exit 1", ""},
				{askNext, "more\r"},
				{askNext, keyEnter},
			},
			conversation: "echo so far; sleep 60\n" + killed + "\ncommand: The user ran a command:\ncommand: The user ran a command:\n" + submitCommand +
				"\ncommand: The user ran a command:\nfollow_up: more\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "the model shown and switched", rich: true, replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, "/model\r"},
				{"The model is ", ""},
				{askConfirm, "/model other\r"},
				{"Switched to other", ""},
				{askConfirm, "/MODEL\r"},
				{"The model is other", ""},
				{askConfirm, keyEnter},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ranOK + "\n" + submitCommand, decisions: "allow user, allow user",
		},
		{
			name: "compacted", rich: true, replies: []string{"echo a", "echo b", "echo c", "the summary", submitCommand},
			steps: []step{
				{askConfirm, "/compact\r"},
				{"before the model's next step", ""},
				{askConfirm, keyEnter},
				{"nothing to compact", ""},
				{askConfirm, keyEnter},
				{askConfirm, "/compact the names\r"},
				{"before the model's next step", ""},
				{askConfirm, keyEnter},
				{"conversation was compacted (summarize)", ""},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\n" + ranOK + "\necho b\n" + ranOK + "\necho c\n" + ranOK + "\n" + submitCommand, decisions: "allow user, allow user, allow user, allow user",
		},
		{
			name: "a new conversation, at a question and while a command runs", rich: true, args: []string{"-c", "agent.mode=confirm"}, replies: []string{"echo so far; sleep 60"},
			steps: []step{
				{askConfirm, "/nosuch thing\r"},
				{"Unknown command /nosuch", ""},
				{askConfirm, "/d file\r"},
				{"/d takes no text after it", ""},
				{askConfirm, "/new the second\r"},
				{"a new conversation begins", ""},
				{askConfirm, "/y\r"},
				{"so far\n", "/clear\r"},
				{"a new conversation begins", ""},
				{askTask, "/new\r"},
				{"a new conversation begins", ""},
				{askTask, "the third\r"},
				{"so far\n", "/exit\r"},
			}, code: 130,
			conversation: "echo so far; sleep 60", decisions: "allow mode",
		},
		{name: "a new conversation at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, "/new\r"}, {"a new conversation begins", ""}, {askTask, "more\r"}, {askNext, "/exit\r"}}, conversation: submitCommand, decisions: "allow mode"},
		{
			name: "confirm to yolo runs the command", replies: []string{"echo a", "echo b", submitCommand},
			steps:        []step{{askConfirm, "/y\r"}, {"Switched to yolo", ""}, {askNext, "y\r"}},
			conversation: "echo a\n" + ranOK + "\necho b\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "confirm to human rejects the command", replies: []string{"echo a", submitCommand},
			steps: []step{
				{askConfirm, "/u\r"},
				{askCommand, "echo mine\r"},
				{askCommand, "/c\r"},
				{"Switched to confirm", ""},
				{askConfirm, keyEnter},
				{askNext, keyEnter},
			},
			conversation: "echo a\nrejection: The user did not let this command run. " + takeOver + "\n" +
				"command: The user ran a command:\n" + submitCommand,
			decisions: "deny user, allow user",
		},
		{
			name: "already in confirm", replies: []string{submitCommand},
			steps:        []step{{askConfirm, "/c\r"}, {"Already in confirm mode", ""}, {askConfirm, "/CONFIRM \r"}, {"Already", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: submitCommand, decisions: "allow user",
		},
		{
			name: "human from the beginning, then yolo", args: []string{"-c", "agent.mode=human"}, replies: []string{"echo b", submitCommand},
			steps:        []step{{askCommand, "echo mine > mine\r"}, {askCommand, keyEnter}, {askCommand, "/y\r"}, {"Switched to yolo", ""}, {askNext, keyEnter}},
			conversation: "command: The user ran a command:\necho b\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "human runs a path", args: []string{"-c", "agent.mode=human"}, replies: []string{submitCommand},
			steps:        []step{{askCommand, "/bin/echo a\r"}, {askCommand, "//bin/echo b\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: "command: The user ran a command:\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode",
		},
		{
			name: "help in confirm, in human and at the end", replies: []string{submitCommand},
			steps: []step{
				{askConfirm, "/h\r"},
				{"run commands without asking", ""},
				{askConfirm, "/u\r"},
				{askCommand, "/h\r"},
				{"/multiline", ""},
				{askCommand, submitCommand + "\r"},
				{askNext, "/help\r"},
				{"/undo", ""},
				{askNext, keyEnter},
			},
			conversation: submitCommand + "\nrejection: The user did not let this command run. " + takeOver,
			decisions:    "deny user",
		},
		{
			name: "unknown slash command", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, "/yol\r"}, {"Unknown command /yol.", ""}, {askConfirm, "//yol is no command\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: /yol is no command\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "yolo from the beginning", args: []string{"-y"}, replies: []string{"echo a", submitCommand},
			steps: []step{{askNext, keyEnter}}, conversation: "echo a\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow mode", unseen: askConfirm,
		},
		{
			name: "whitelisted", args: []string{"-c", `agent.whitelist_actions=["echo [ab]", "true && echo COMPLETE"]`}, replies: []string{"echo a", "true; echo b", submitCommand},
			steps:        []step{{"$ true; echo b", ""}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\n" + ranOK + "\ntrue; echo b\n" + ranOK + "\n" + submitCommand, decisions: "allow whitelist, allow user, allow whitelist",
		},
		{
			name: "to human inside an interruption", args: []string{"-y"}, replies: []string{"echo so far; sleep 60", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, "/u\r"}, {askCommand, "echo mine\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: "echo so far; sleep 60\n" + killed + "\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "interrupted in mid-reply", rich: true, args: []string{"-y", "-c", "model.delay=60"}, replies: []string{submitCommand},
			steps: []step{{"step 1", keyCtrlC}, {askMessage, "/q\r"}}, code: 130,
		},
		{
			name: "left inside an interruption by Ctrl-C", rich: true, args: []string{"-y"}, replies: []string{"echo so far; sleep 60"},
			steps: []step{{"so far", ""}, {"so far", keyCtrlC}, {askMessage, keyCtrlC}}, code: 130,
			conversation: "echo so far; sleep 60\n" + killed, decisions: "allow mode",
		},
		{
			name: "steered by a line while a command runs", rich: true, args: []string{"-y"}, replies: []string{"echo so far; until [ -e go ]; do sleep 0.05; done", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", "use tabs\r"}, {"The model will get this", "!touch go"}, {askNext, keyEnter}},
			conversation: "echo so far; until [ -e go ]; do sleep 0.05; done\n" + ranOK + "\nsteer: use tabs\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "mode switched while a command runs", args: []string{"-y"}, replies: []string{"echo so far; until [ -e go ]; do sleep 0.05; done", submitCommand},
			steps:        []step{{"so far", ""}, {"so far", "/c\r"}, {"Switched to confirm", "!touch go"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo so far; until [ -e go ]; do sleep 0.05; done\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{
			name: "Ctrl-C at a confirmation, with a message", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "not so\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: not so\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "Ctrl-C at a confirmation, to human", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "/u\r"}, {askCommand, submitCommand + "\r"}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. " + takeOver, decisions: "deny user",
		},
		{
			name: "Ctrl-C at a confirmation, with a message that looks like a yes", replies: []string{"echo a", submitCommand},
			steps:        []step{{askConfirm, keyCtrlC}, {askMessage, "yes\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "echo a\nrejection: The user did not let this command run. The user says: yes\n" + submitCommand, decisions: "deny user, allow user",
		},
		{
			name: "Ctrl-C twice at a confirmation", rich: true, replies: []string{"echo a"},
			steps: []step{{askConfirm, keyCtrlC}, {askMessage, keyCtrlC}}, code: 130, conversation: "echo a",
		},
		{
			name: "Ctrl-D at a confirmation", rich: true, replies: []string{"echo a"},
			steps: []step{{askConfirm, keyCtrlD}}, code: 130, conversation: "echo a",
		},
		{
			name: "Ctrl-C once at a command, then twice", args: []string{"-c", "agent.mode=human"},
			steps: []step{{askCommand, keyCtrlC}, {"again to quit", ""}, {askCommand, "true\r"}, {askCommand, keyCtrlC}, {"again to quit", ""}, {askCommand, keyCtrlC}},
			code:  130, conversation: "command: The user ran a command:",
		},
		{
			name: "step limit raised several times", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true", "true", "true", submitCommand},
			steps:        []step{{askLimit, "many\r"}, {"is not a number of steps", ""}, {askLimit, "1\r"}, {"already at", ""}, {askLimit, "2\r"}, {askLimit, "+1\r"}, {askLimit, "0 0\r"}, {askNext, keyEnter}},
			conversation: strings.Repeat("true\n"+ranOK+"\n", 3) + submitCommand, decisions: "allow mode, allow mode, allow mode, allow mode",
		},
		{
			name: "step limit not raised, by a no", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true"},
			steps: []step{{askLimit, "y\r"}, {"is not a number of steps", ""}, {askLimit, "n\r"}}, conversation: "true\n" + ranOK, decisions: "allow mode",
		},
		{
			name: "mode switched at a limit", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true", submitCommand},
			steps:        []step{{askLimit, "/c\r"}, {"Switched", ""}, {askLimit, "5 2.5\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: "true\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{
			name: "Ctrl-C twice at a limit", args: []string{"-y", "-c", "agent.step_limit=1"}, replies: []string{"true"},
			steps: []step{{askLimit, keyCtrlC}, {"Ctrl-C again to quit", ""}, {askLimit, keyCtrlC}}, code: 130, conversation: "true\n" + ranOK, decisions: "allow mode",
		},
		{
			name: "leave at a child's question", args: []string{"-c", "agents.enabled=true"}, replies: []string{"mini-tool delegate x; echo after", "echo its own"},
			steps: []step{{askConfirm, keyEnter}, {"child 1", ""}, {"of a subagent?", keyCtrlC}, {askMessage, keyCtrlC}}, code: 130,
			conversation: "mini-tool delegate x; echo after", decisions: "allow user",
		},
		{
			name: "no question about the time", args: []string{"-y", "-c", "agent.wall_time_limit_seconds=15"}, replies: []string{"sleep 60"},
			conversation: "sleep 60", decisions: "allow mode", unseen: askLimit,
		},
		{
			name: "new tasks at the end", rich: true, args: []string{"-y"}, replies: []string{submitCommand, submitCommand, submitCommand},
			steps:        []step{{askNext, "and a\r"}, {askNext, "/m\r"}, {askLines, "and b\rand c\r\x04"}, {"thought 3", ""}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: and a\n" + submitCommand + "\nfollow_up: and b\n" + submitCommand, decisions: "allow mode, allow mode, allow mode",
		},
		{
			name: "to human at the end", args: []string{"-y"}, replies: []string{submitCommand, submitCommand},
			steps:        []step{{askNext, "/u\r"}, {"Switched to", ""}, {askNext, "n\r"}, {"What comes next?", "I go on\r"}, {askCommand, "true\r"}, {askCommand, "/y\r"}, {"Switched to", ""}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: I go on\ncommand: The user ran a command:\n" + submitCommand, decisions: "allow mode, allow mode",
		},
		{
			name: "to confirm at the end, with a new task", args: []string{"-y"}, replies: []string{submitCommand, submitCommand},
			steps:        []step{{askNext, "/c\r"}, {"Switched", ""}, {askNext, "more\r"}, {askConfirm, keyEnter}, {askNext, keyEnter}},
			conversation: submitCommand + "\nfollow_up: more\n" + submitCommand, decisions: "allow mode, allow user",
		},
		{name: "Ctrl-D at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, keyCtrlD}}, conversation: submitCommand, decisions: "allow mode"},
		{name: "Ctrl-C twice at the end", args: []string{"-y"}, replies: []string{submitCommand}, steps: []step{{askNext, keyCtrlC}, {"Ctrl-C again to quit", ""}, {askNext, keyCtrlC}}, conversation: submitCommand, decisions: "allow mode"},
		{name: "no question at the end", args: []string{"-y", "--exit-immediately"}, replies: []string{"echo a > a", submitCommand}, conversation: "echo a > a\n" + ranOK + "\n" + submitCommand, decisions: "allow mode, allow mode", unseen: askNext},
		{name: "no question at the end, by setting", args: []string{"-y", "-c", "agent.confirm_exit=false"}, replies: []string{submitCommand}, conversation: submitCommand, decisions: "allow mode", unseen: askNext},
	})
}
