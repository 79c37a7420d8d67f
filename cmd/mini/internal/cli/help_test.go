package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpOf is what `mini ARGS --help` prints.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := Main(append(args, "--help"), Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != exitOK {
		t.Fatalf("mini %v --help: exit code %d\n%s", args, code, &out)
	}
	return out.String()
}

// commandsOf are all commands that help shows.
func commandsOf(t *testing.T) []*cobra.Command {
	t.Helper()
	var all []*cobra.Command
	walk(newRoot(t.Context(), Streams{}), func(cmd *cobra.Command) {
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
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(text, "--"+f.Name); shown == f.Hidden {
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
