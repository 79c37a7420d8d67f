package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/ui/progress"
	"github.com/minibench/mini/env/docker"
	"github.com/minibench/mini/env/docker/imagestore"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner"
)

// pullResult is the output of mini images pull --json.
type pullResult struct {
	Images  []pulledImage `json:"images"`
	Here    int           `json:"here"` // present before the pull
	Pulled  int           `json:"pulled"`
	Failed  int           `json:"failed"`
	Stopped int           `json:"stopped"` // canceled by an interrupt
}

// pulledImage is one image in a pullResult.
type pulledImage struct {
	Image  string `json:"image"`
	State  string `json:"state"` // here, pulled, failed or stopped
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"` // on disk
	Error  string `json:"error,omitempty"`
}

// newImagesPull returns the command mini images pull.
func newImagesPull(a *app.App) *cobra.Command {
	o := &imagesOptions{}
	cmd := &cobra.Command{
		Use:   "pull --subset SET",
		Short: "Pull the missing images of a dataset",
		Long: `Pulls the images of the rows of a dataset. It waits if a registry limits pulls.
The exit code is 3 if an image could not be pulled.`,
		Example: "  mini images pull --subset verified --slice 0:20\n  mini images pull --subset rows.jsonl -c run.pulls_per_minute=10",
		Args:    cmdutil.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return pull(cmd.Context(), a, o) },
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&o.parallel, "at-once", 2, "number of images to pull in parallel")
	cmd.Flags().String("image-budget", "", "disk space for pulled images, for example 80GB")
	return cmd
}

func pull(ctx context.Context, a *app.App, o *imagesOptions) error {
	if o.parallel < 1 {
		return usage.Errorf("--at-once %d: must be at least 1", o.parallel)
	}
	cfg, requests, err := o.prepare(ctx, a, true)
	if err != nil {
		return err
	}
	store, closeStore, err := envopen.OpenImages(ctx, cfg, false, progress.PrintImageEvents(a.Err), func(config *docker.EngineConfig) {
		config.Images.NoWait = true // waiting for space is useless: no worker releases an image meanwhile
		config.PullProgress = progress.PullEvents(func(e runner.Event) {
			_, _ = fmt.Fprintln(a.Err, "mini: pull:", text.Printable(e.Text)) // best effort
		})
	})
	if err != nil {
		return err
	}
	if err := store.CheckBudget(ctx, requests); err != nil {
		return errors.Join(usage.Wrap(err), closeStore())
	}
	result, release := pullImages(ctx, store, requests, o.parallel, a.Err)
	release()
	err = errors.Join(closeStore(), cmdutil.PrintResult(a.Streams, o.bench.JSON, result, pullText(result)))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil && result.Stopped > 0:
		return fmt.Errorf("%w; run the same command to continue", agent.ErrInterrupted)
	case result.Failed > 0:
		return cmdutil.ErrIncomplete
	}
	return nil
}

// pullImages pulls each image once and prints errors to w. It leases all images until
// release is called, so that the store does not remove one to make room for another.
func pullImages(ctx context.Context, store *imagestore.Store, requests []imagestore.Request, parallel int, w io.Writer) (r pullResult, release func()) {
	var mu sync.Mutex
	var leases []func()
	var group errgroup.Group
	group.SetLimit(parallel)
	seen := map[string]bool{}
	for _, request := range requests {
		if seen[request.Ref] {
			continue
		}
		seen[request.Ref] = true
		request.Requester = ""
		i := len(r.Images)
		mu.Lock()
		r.Images = append(r.Images, pulledImage{Image: request.Ref, State: "pulled"})
		mu.Unlock()
		group.Go(func() error {
			_, present, _ := store.Lookup(ctx, request)
			pulled, release, err := store.Ensure(ctx, request)
			mu.Lock()
			defer mu.Unlock()
			image := &r.Images[i]
			switch {
			case err != nil && ctx.Err() != nil:
				image.State = "stopped"
				r.Stopped++
			case err != nil:
				image.State, image.Error = "failed", err.Error()
				r.Failed++
				line := err.Error()
				if hint := cmdutil.Hint(err); hint != "" {
					line += "; " + hint
				}
				_, _ = fmt.Fprintln(w, "mini:", text.Printable(line)) // best effort
			default:
				leases = append(leases, release)
				image.Digest, image.Bytes = pulled.Digest, pulled.Size
				if r.Pulled++; present {
					r.Pulled--
					r.Here++
					image.State = "here"
				}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the result
	return r, func() {
		for _, release := range leases {
			release()
		}
	}
}

// pullText formats the result, one image per line.
func pullText(r pullResult) string {
	var b strings.Builder
	for _, image := range r.Images {
		line := fmt.Sprintf("%-7s %s", image.State, image.Image)
		if image.Bytes > 0 {
			line += fmt.Sprintf("  %s", unit.Size(image.Bytes))
		}
		b.WriteString(text.Printable(line) + "\n")
	}
	fmt.Fprintf(&b, "%s: %d pulled, %d present before, %d failed", text.Count(len(r.Images), "image"), r.Pulled, r.Here, r.Failed)
	if r.Stopped > 0 {
		fmt.Fprintf(&b, ", %d stopped", r.Stopped)
	}
	return b.String() + "\n"
}
