package chat

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseLimits(t *testing.T) {
	now := agent.Limits{Steps: 10, Cost: 3}
	for _, tt := range []struct {
		text  string
		steps bool // the step limit, not the cost limit, was reached
		want  agent.Limits
		bad   bool
	}{
		{"20", true, agent.Limits{Steps: 20, Cost: 3}, false},
		{"20", false, agent.Limits{Steps: 10, Cost: 20}, false},
		{"+5", true, agent.Limits{Steps: 15, Cost: 3}, false},
		{"+0.5", false, agent.Limits{Steps: 10, Cost: 3.5}, false},
		{"$4", false, agent.Limits{Steps: 10, Cost: 4}, false},
		{"+$4", false, agent.Limits{Steps: 10, Cost: 7}, false},
		{"20 5.5", true, agent.Limits{Steps: 20, Cost: 5.5}, false},
		{"20,5.5", false, agent.Limits{Steps: 20, Cost: 5.5}, false},
		{"0", true, agent.Limits{Cost: 3}, false},
		{"0 0", true, agent.Limits{}, false},
		{"many", true, now, true},
		{"1.5", true, now, true},
		{"-1", true, now, true},
		{"-1", false, now, true},
		{"Inf", false, now, true},
		{"NaN", false, now, true},
		{"1e999", false, now, true},
		{"99999999999999999999", true, now, true},
		{"1 2 3", true, now, true},
		{",", true, now, true},
	} {
		got, err := parseLimits(tt.text, now, tt.steps)
		if (err != nil) != tt.bad || err == nil && got != tt.want {
			t.Errorf("%q, steps %t: %+v, %v", tt.text, tt.steps, got, err)
		}
	}
}

func TestUnknownSlashCommand(t *testing.T) {
	for typo, want := range map[string]string{
		"/prices": "Unknown command /prices. /h lists the commands; //prices sends it to the model.",
		"/yol":    "Unknown command /yol. /h lists the commands; //yol sends it to the model.",
	} {
		if got := unknownSlash(typo); got != want {
			t.Errorf("%s: %q, want %q", typo, got, want)
		}
	}
}

func TestSlashCommandsAndTexts(t *testing.T) {
	for text, want := range map[string]action{
		"/y": actionMode, "/YOLO ": actionMode, " /c\n": actionMode, "/human": actionMode, "/h": actionHelp, "/?": actionHelp, "/": actionHelp,
		"/m": actionMultiline, "/d": actionDiff, "/undo": actionUndo, "/t": actionThinking, "/cost": actionState, "/q": actionQuit, "/foo": actionUnknown,
		"/y please": actionSurplus, "/undo 1": actionUndo, "/d 1": actionSurplus, "/nosuch thing": actionUnknown, "/new fix it": actionNew, "/clear": actionNew, "/Compact a\nb": actionCompact, "/sessions parser": actionSessions,
	} {
		if got, ok := parseSlash(text); !ok || got.action != want {
			t.Errorf("%q is %v, %t", text, got.action, ok)
		}
	}
	for _, text := range []string{"", "y", "//y", "/usr/bin/env", "/y please\nfor now", "see /h", "/etc/hosts is wrong", "/3"} {
		if got, ok := parseSlash(text); ok {
			t.Errorf("%q is parsed as action %v", text, got.action)
		}
	}
	for text, want := range map[string]string{"//etc": "/etc", "/etc/hosts": "/etc/hosts", "x //y": "x //y"} {
		if got := unescape(text); got != want {
			t.Errorf("%q is sent as %q", text, got)
		}
	}
}
