package skills_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/skills"
)

// clock is a tool of a program that embeds mini.
type clock struct{}

func (clock) Spec() tools.Spec {
	return tools.Spec{Name: "clock", Usage: "clock", Description: "says what time it is"}
}

func (clock) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Output: "noon\n"}, nil
}

// A program gives its agent its own skill, mini's skills and a tool.
func Example() {
	own := fstest.MapFS{"our-releases/SKILL.md": {Data: []byte(`---
name: our-releases
description: How a release is made here
---
Run make release, then wait.
`)}}
	set := skills.Load(skills.Source{Name: "built in", Files: own}, skills.ShippedSource())
	for _, p := range set.Problems {
		fmt.Println(p)
	}
	use, err := set.Select([]string{"our-releases", "planning-with-files"})
	if err != nil {
		fmt.Println(err)
		return
	}
	bundle, err := skills.NewBundle(use)
	if err != nil {
		fmt.Println(err)
		return
	}
	skill := bundle.Tool(skills.Options{}) // one for each attempt
	box, err := tools.New(tools.Config{Tools: []tools.Tool{skill, clock{}}, Skills: bundle.Capabilities()})
	if err != nil {
		fmt.Println(err)
		return
	}
	// agent.Session{Tools: box, ...} gives it to an attempt.
	for _, s := range box.Capabilities().Skills {
		fmt.Println(s.Name)
	}
	res, err := skill.Call(context.Background(), tools.Call{Args: []string{"our-releases"}})
	fmt.Print(res.Output, err)
	// Output:
	// our-releases
	// planning-with-files
	// skill our-releases
	//
	// Run make release, then wait.
	// <nil>
}
