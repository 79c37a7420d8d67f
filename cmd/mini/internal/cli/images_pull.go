package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env/docker/images"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/report"
)

// pullOptions are the flags of mini images pull.
type pullOptions struct {
	imagesOptions
	atOnce int
}

// pullResult is what mini images pull --json prints.
type pullResult struct {
	Images  []pulledImage `json:"images"`
	Here    int           `json:"here"` // before
	Pulled  int           `json:"pulled"`
	Failed  int           `json:"failed"`
	Stopped int           `json:"stopped"` // when it was interrupted
}

type pulledImage struct {
	Image  string `json:"image"`
	State  string `json:"state"` // here, pulled, failed or stopped
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // on disk
	Error  string `json:"error,omitempty"`
}

func newImagesPull(s Streams) *cobra.Command {
	o := &pullOptions{}
	cmd := &cobra.Command{
		Use:   "pull --subset SET",
		Short: "Pull the images of a dataset, those that are not here",
		Long: `Pulls the images of a dataset's rows. Registries that limit pulls are waited
for. Exit code 3 says that some could not be pulled.`,
		Example: "  mini images pull --subset verified --slice 0:20\n  mini images pull --subset rows.jsonl -c run.pulls_per_minute=10",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), s) },
	}
	o.flags(cmd.Flags())
	cmd.Flags().IntVar(&o.atOnce, "at-once", 2, "number of images to pull in parallel")
	cmd.Flags().String("image-budget", "", "disk space for pulled images, as 80GB")
	return cmd
}

func (o *pullOptions) run(ctx context.Context, s Streams) error {
	if o.atOnce < 1 {
		return usagef("--at-once %d: at least 1 is needed", o.atOnce)
	}
	cfg, err := o.settings()
	if err != nil {
		return err
	}
	needs, err := o.needs(ctx, s, cfg)
	if err != nil {
		return err
	}
	c, closeRegistry, err := imageConfig(cfg, false, sayNote(s.Err))
	if err != nil {
		return err
	}
	defer closeRegistry()
	c.NoWait = true // nobody gives anything back
	store, done, err := openImages(ctx, cfg, c, pullEvents(func(e runner.Event) {
		_, _ = fmt.Fprintln(s.Err, "mini: pull:", report.Printable(e.Text)) // only for people
	}))
	if err != nil {
		return err
	}
	if err := store.CheckBudget(ctx, needs); err != nil {
		return errors.Join(before(err), done())
	}
	result, release := pullImages(ctx, store, needs, o.atOnce, s.Err)
	release()
	err = done()
	if o.json {
		err = errors.Join(err, json.NewEncoder(s.Out).Encode(result))
	} else {
		err = errors.Join(err, printPulled(s.Out, result))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil && result.Stopped > 0:
		return fmt.Errorf("%w; the same command goes on where it stopped", agent.ErrInterrupted)
	case result.Failed > 0:
		return errIncomplete
	}
	return nil
}

// pullImages pulls each image once. All stay needed until release is called:
// one must not make room for the other.
func pullImages(ctx context.Context, store *images.Store, needs []images.Need, atOnce int, w io.Writer) (r pullResult, release func()) {
	var mu sync.Mutex
	var held []func()
	var pulling errgroup.Group
	pulling.SetLimit(atOnce)
	seen := map[string]bool{}
	for _, n := range needs {
		if seen[n.Ref] {
			continue
		}
		seen[n.Ref] = true
		n.For = ""
		i := len(r.Images)
		mu.Lock()
		r.Images = append(r.Images, pulledImage{Image: n.Ref, State: "pulled"})
		mu.Unlock()
		pulling.Go(func() error {
			_, here, _ := store.Look(ctx, n)
			img, give, err := store.Ensure(ctx, n)
			mu.Lock()
			defer mu.Unlock()
			item := &r.Images[i]
			switch {
			case err != nil && ctx.Err() != nil:
				item.State = "stopped"
				r.Stopped++
			case err != nil:
				item.State, item.Error = "failed", err.Error()
				r.Failed++
				text := err.Error()
				if hint := hintOf(err); hint != "" {
					text += "; " + hint
				}
				_, _ = fmt.Fprintln(w, "mini:", report.Printable(text)) // only for people
			default:
				held = append(held, give)
				item.Digest, item.Bytes = img.Digest, img.Size
				if r.Pulled++; here {
					r.Pulled--
					r.Here++
					item.State = "here"
				}
			}
			return nil
		})
	}
	_ = pulling.Wait() // what failed is in the result
	return r, func() {
		for _, give := range held {
			give()
		}
	}
}

func printPulled(w io.Writer, r pullResult) error {
	for _, i := range r.Images {
		text := fmt.Sprintf("%-7s %s", i.State, i.Image)
		if i.Bytes > 0 {
			text += fmt.Sprintf("  %s", report.Size(i.Bytes))
		}
		if _, err := fmt.Fprintln(w, report.Printable(text)); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s: %d pulled, %d here before, %d failed", report.Count(len(r.Images), "image"), r.Pulled, r.Here, r.Failed)
	if r.Stopped > 0 {
		text += fmt.Sprintf(", %d stopped", r.Stopped)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
