// Command man writes the manual pages of mini into a folder: one page of section 1
// for each command, and one page of section 7 for each help topic.
//
//	go run ./cmd/mini/internal/man bin/man
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER")
		os.Exit(2)
	}
	if err := writePages(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// writePages writes all pages into dir.
func writePages(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil { //nolint:gosec // G703: a folder that the caller names
		return err
	}
	root := cli.NewRoot(app.New(context.Background(), cmdutil.Streams{}))
	cmdutil.WalkCommands(root, func(cmd *cobra.Command) {
		cmd.Long = keepLayout(cmd.Long)
		cmd.DisableAutoGenTag = true
	})
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "mini", Manual: "mini"}, dir); err != nil {
		return err
	}
	for _, topic := range cli.Topics {
		if err := writeTopic(filepath.Join(dir, "mini-"+topic.Name+".7"), topic); err != nil {
			return err
		}
	}
	return nil
}

// writeTopic writes the page of a help topic.
func writeTopic(file string, topic cli.Topic) error {
	f, err := os.Create(file) //nolint:gosec // G304: the path is this program's own
	if err != nil {
		return err
	}
	page := &cobra.Command{
		Use: "mini-" + topic.Name, Short: topic.Short, Long: keepLayout(topic.Text()),
		DisableAutoGenTag: true, DisableFlagsInUseLine: true,
	}
	page.Flags().Bool("help", false, "") // replaces the flag that cobra would add
	_ = page.Flags().MarkHidden("help")  // the flag exists
	return errors.Join(doc.GenMan(page, &doc.GenManHeader{Section: "7", Source: "mini", Manual: "mini"}, f), f.Close())
}

// keepLayout turns the indented lines of a text into code blocks of Markdown,
// from which cobra makes the pages.
func keepLayout(text string) string {
	var b strings.Builder
	inBlock := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "  ")
		if blank := strings.TrimSpace(line) == ""; indented != inBlock && !blank {
			b.WriteByte('\n')
			inBlock = indented
		}
		if indented {
			b.WriteString("  ") // four spaces begin a code block
		}
		b.WriteString(line)
	}
	return b.String()
}
