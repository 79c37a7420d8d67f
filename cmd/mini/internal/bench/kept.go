package bench

import (
	"fmt"
	"io"

	"github.com/minibench/mini/internal/text"
)

// printKept prints the number of attempts with kept sandboxes. It adds how to open and remove the
// containers or, without containers, where mini has named the folders.
func printKept(w io.Writer, kept int, class, dir string) error {
	if kept == 0 {
		return nil
	}
	hint := "their folders are named above, and in events.jsonl"
	if class == "docker" {
		hint = fmt.Sprintf("mini shell --run %[1]s INSTANCE opens one, mini clean --kept --run %[1]s removes them", text.ShellQuote(dir))
	}
	_, err := fmt.Fprintf(w, "\nkept   %s; %s\n", text.Count(kept, "attempt"), hint)
	return err
}
