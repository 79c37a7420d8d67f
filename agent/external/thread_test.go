package external

import (
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

func said(role model.Role, text string) model.Message {
	return model.Message{Role: role, Content: text}
}

// TestThread follows a conversation with calls of other threads in between.
func TestThread(t *testing.T) {
	system, task := said(model.System, "You fix bugs."), said(model.User, "fix it")
	first := said(model.Assistant, "The first thing to do is to read the file that the report names.")
	output, second := said(model.User, "output"), said(model.Assistant, "Now I know what is wrong and change it in two places.")
	record := 0
	var th thread
	// step is a request, and then its reply; it returns the context of the request.
	step := func(reply string, messages ...model.Message) *trajectories.PromptContext {
		for _, m := range messages[th.match(messages):] {
			record++
			th.add(record, m)
		}
		c := th.context()
		record++
		th.reply(record, trajectories.Message{Message: said(model.Assistant, reply)}, th.replied)
		return c
	}
	if c := step(first.Content, system, task); c != nil {
		t.Errorf("context %+v", c)
	}
	for name, other := range map[string][]model.Message{
		"title":    {said(model.System, "Write a title."), task},
		"subagent": {said(model.System, "You search."), said(model.User, "search for it")},
	} {
		if th.continues(other) {
			t.Errorf("%s continues the thread", name)
		}
	}
	spaced := first
	spaced.Content += "\n"
	next := []model.Message{system, task, spaced, output}
	if !th.continues(next) || step(second.Content, next...) != nil {
		t.Error("white space makes another thread")
	}
	reminded := output
	reminded.Content += "<system-reminder>be brief</system-reminder>"
	next = []model.Message{system, task, first, reminded, second, said(model.User, "more")}
	if !th.continues(next) || step("third", next...) != nil {
		t.Error("a reminder makes another thread")
	}
	// An earlier output is cut: the same thread, with a context.
	next = []model.Message{system, task, first, said(model.User, "[cut]"), second, said(model.User, "more"), said(model.Assistant, "third"), said(model.User, "and more")}
	if !th.continues(next) {
		t.Fatal("a rewritten message makes another thread")
	}
	c := step("fourth, which is a text that is long enough to be found again", next...)
	if c == nil || len(c.Sent) != 3 || c.Sent[0].To != 3 || c.Sent[1].Message == nil || c.Sent[2].From != 5 {
		t.Fatalf("context %+v", c)
	}
	// The next request shows the same again.
	next = append(next, said(model.Assistant, "fourth, which is a text that is long enough to be found again"), said(model.User, "end"))
	if c := step("fifth: a summary of all that was done so far, for later", next...); c == nil || len(c.Sent) != 3 {
		t.Errorf("context %+v", c)
	}
	// A short history with the last reply is a compaction.
	next = []model.Message{system, said(model.User, "Go on from here: fifth: a summary of all that was done so far, for later")}
	if !th.continues(next) {
		t.Fatal("a compaction makes another thread")
	}
	if c := step("sixth", next...); c == nil || len(c.Sent) != 2 || c.Sent[0].From != 1 {
		t.Errorf("context %+v", c)
	}
}
