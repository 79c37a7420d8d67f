package memory_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/env"
)

// Notes are stored in a file; any number of programs may use it.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store := memory.NewStore(filepath.Join(dir, "notes.json"))
	added, err := store.Add(context.Background(), "Build", "make helper comes first")
	fmt.Println(added.ID, added.Category, err)
	all, err := store.Notes()
	fmt.Println(len(all), all[0].Text, err)
	// Output:
	// 1 build <nil>
	// 1 make helper comes first <nil>
}

// A registry with all tools of the package. It is usually the Tools of a session;
// here it is called directly.
func Example() {
	store := memory.NewStore(filepath.Join(os.TempDir(), "nothing-here", "notes.json"))
	list := append(memory.NoteTools(store), memory.NewGoals(), memory.RecallTool{})
	box, err := tools.New(tools.Config{Tools: list})
	if err != nil {
		fmt.Println(err)
		return
	}
	a := box.Handle(context.Background(), agent.ToolRequest{ToolRequest: env.ToolRequest{Args: []string{"goal", "add", "fix it"}}})
	fmt.Printf("%s%d", a.Stdout, a.ExitCode)
	// Output:
	// goal 1 is open: fix it
	// 1 goal: 1 open, 0 done
	// 0
}
