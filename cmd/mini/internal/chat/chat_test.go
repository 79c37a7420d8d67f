package chat

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRaised(t *testing.T) {
	now := agent.Limits{Steps: 10, Cost: 3}
	for _, tt := range []struct {
		text  string
		steps bool // that limit was reached
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
		got, err := raised(tt.text, now, tt.steps)
		if (err != nil) != tt.bad || err == nil && got != tt.want {
			t.Errorf("%q, steps %t: %+v, %v", tt.text, tt.steps, got, err)
		}
	}
}

func TestUnknownSlashCommand(t *testing.T) {
	for typo, want := range map[string]string{
		"/model": "There is no /model. /h lists the commands; //model sends it to the model.",
		"/yol":   "There is no /yol; did you mean /yolo? /h lists the commands; //yol sends it to the model.",
	} {
		if got := unknown(typo); got != want {
			t.Errorf("%s: %q, want %q", typo, got, want)
		}
	}
}

func TestSlashCommandsAndTexts(t *testing.T) {
	for text, want := range map[string]act{
		"/y": actMode, "/YOLO ": actMode, " /c\n": actMode, "/human": actMode, "/h": actHelp, "/?": actHelp, "/": actHelp,
		"/m": actMulti, "/d": actDiff, "/undo": actUndo, "/t": actThinking, "/cost": actState, "/q": actLeave, "/foo": actUnknown,
	} {
		if got, ok := parse(text); !ok || got.act != want {
			t.Errorf("%q is %v, %t", text, got.act, ok)
		}
	}
	for _, text := range []string{"", "y", "//y", "/usr/bin/env", "/y please", "see /h", "/etc/hosts is wrong", "/3"} {
		if got, ok := parse(text); ok {
			t.Errorf("%q is taken for %v", text, got.act)
		}
	}
	for text, want := range map[string]string{"//etc": "/etc", "/etc/hosts": "/etc/hosts", "x //y": "x //y"} {
		if got := unescaped(text); got != want {
			t.Errorf("%q is sent as %q", text, got)
		}
	}
}
