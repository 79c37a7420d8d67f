package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
)

// helpOf returns the output of mini ARGS --help.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := Main(append(args, "--help"), cmdutil.Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != cmdutil.ExitOK {
		t.Fatalf("mini %v --help: exit code %d\n%s", args, code, &out)
	}
	return out.String()
}

// commandsOf returns all commands that are not hidden.
func commandsOf(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	cmdutil.WalkCommands(NewRoot(app.New(t.Context(), cmdutil.Streams{})), func(cmd *cobra.Command) {
		if !cmd.Hidden {
			all = append(all, cmd)
		}
	})
	return all
}

func TestHelpIsComplete(t *testing.T) {
	for _, cmd := range commandsOf(t) {
		text := helpOf(t, strings.Fields(cmd.CommandPath())[1:]...)
		if !strings.Contains(text, "\nUsage:\n  "+cmd.CommandPath()) {
			t.Errorf("%s: no usage line\n%s", cmd.CommandPath(), text)
		}
		if cmd.Example == "" || !strings.Contains(text, cmd.Example) {
			t.Errorf("%s: no example", cmd.CommandPath())
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text %q", cmd.CommandPath(), cmd.Short)
		}
		if flagGroups[cmd.CommandPath()] != nil && strings.Contains(text, "\nFlags:") {
			t.Errorf("%s: a flag is in no group\n%s", cmd.CommandPath(), text)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if shown := regexp.MustCompile(`--` + f.Name + `[^-a-z]`).MatchString(text); shown == f.Hidden {
				t.Errorf("%s: --%s is shown: %t, hidden: %t", cmd.CommandPath(), f.Name, shown, f.Hidden)
			}
			if !f.Hidden && f.Usage == "" {
				t.Errorf("%s: --%s says nothing", cmd.CommandPath(), f.Name)
			}
		})
	}
}

func TestEveryCommandIsInTheListOfCommands(t *testing.T) {
	text := helpOf(t)
	for _, cmd := range commandsOf(t) {
		if cmd.HasParent() && !cmd.Parent().HasParent() && !strings.Contains(text, " "+cmd.Name()+" ") {
			t.Errorf("mini --help does not list %s", cmd.Name())
		}
	}
	for _, hidden := range []string{"swebench", "agent-class", "guard"} {
		if strings.Contains(text, hidden) {
			t.Errorf("mini --help shows %s", hidden)
		}
	}
}

func TestHelpTopics(t *testing.T) {
	root := helpOf(t)
	files, err := topicFiles.ReadDir("topics")
	if err != nil || len(files) != len(Topics) {
		t.Fatalf("%d files of %d topics, %v", len(files), len(Topics), err)
	}
	for _, topic := range Topics {
		if !strings.Contains(root, "\n  help "+topic.Name+" ") {
			t.Errorf("mini --help does not list the topic %s", topic.Name)
		}
		var out bytes.Buffer
		if code := Main([]string{"help", topic.Name}, cmdutil.Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != cmdutil.ExitOK {
			t.Errorf("mini help %s: exit code %d\n%s", topic.Name, code, &out)
		}
		if out.String() != topic.Text() || strings.Count(topic.Text(), "\n") > 60 {
			t.Errorf("mini help %s prints\n%s", topic.Name, &out)
		}
	}
}
