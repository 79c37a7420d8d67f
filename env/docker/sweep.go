package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sync/errgroup"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// maxRemovals is the number of concurrent removals; an engine does not process more
// in parallel.
const maxRemovals = 8

// Sweep removes the containers, with their anonymous volumes, and the volumes that
// mini processes left behind in the engine. The owner, named by a label, must be a
// process of this host that is proven to be dead. If the owner belongs to another
// boot or PID namespace, the object must be unused and expired. Sweep does not
// touch objects of other hosts. It returns the objects that it removed, without
// those that a concurrent Sweep removed.
func (e *Engine) Sweep(ctx context.Context) ([]Leftover, error) { return e.Clean(ctx, CleanOptions{}) }

// CleanOptions select what Clean removes in addition to Sweep.
type CleanOptions struct {
	IncludeHelpers bool   // unused helper volumes; mini creates them again
	IncludeKept    bool   // kept images of this user and host (see Container.Keep)
	Run            string // restricts IncludeKept to one run, as in Config.Run
	// IncludeUnknown adds objects that may belong to a running process or another user:
	// those whose owner belongs to another boot or PID namespace, and, with
	// IncludeKept, images without a label for the user.
	IncludeUnknown bool
}

// Clean removes the objects that Sweep removes, and those that the options select.
func (e *Engine) Clean(ctx context.Context, opts CleanOptions) ([]Leftover, error) {
	leftovers, err := e.ListLeftovers(ctx, opts)
	if err != nil {
		return nil, err
	}
	return e.removeAll(ctx, leftovers)
}

// leftovers lists the objects that Sweep would remove and, with alsoUnknown, those of
// this user whose owner's state is unknown. Containers come first, because they use the
// volumes.
func (e *Engine) leftovers(ctx context.Context, alsoUnknown bool) ([]Leftover, error) {
	owned := filters.NewArgs(filters.Arg("label", labelOwner))
	containers, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: owned})
	if err != nil {
		return nil, engineError(ctx, env.StartFailed, "list containers", err)
	}
	volumes, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: owned})
	if err != nil {
		return nil, engineError(ctx, env.StartFailed, "list volumes", err)
	}
	var leftovers []Leftover
	add := func(l Leftover, labels map[string]string, inUse bool) {
		o, ok := parseOwner(labels[labelOwner])
		if !ok {
			return
		}
		if !e.isAbandoned(o, labels, inUse) {
			if !alsoUnknown || e.owner.stateOf(o) != ownerUnknown || isOtherUser(labels[labelUser]) {
				return
			}
			l.OwnerUnknown = true
		}
		l.Run, l.Instance, l.Owner = labels[labelRun], labels[labelInstance], fmt.Sprintf("process %d", o.PID)
		leftovers = append(leftovers, l)
	}
	for _, c := range containers {
		inUse := c.State == container.StateRunning || c.State == container.StatePaused
		add(Leftover{Kind: KindContainer, Name: displayName(c), State: c.State, Created: time.Unix(c.Created, 0), id: c.ID}, c.Labels, inUse)
	}
	for _, v := range volumes.Volumes {
		add(Leftover{Kind: KindVolume, Name: v.Name, Created: parseTime(v.CreatedAt), id: v.Name}, v.Labels, false)
	}
	return leftovers, nil
}

// ListLeftovers lists the objects that Clean would try to remove. Clean skips volumes
// that are in use, and returns an error about images that are.
func (e *Engine) ListLeftovers(ctx context.Context, opts CleanOptions) ([]Leftover, error) {
	leftovers, err := e.leftovers(ctx, opts.IncludeUnknown)
	if err != nil {
		return nil, err
	}
	if opts.IncludeHelpers {
		list, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", "mini-helper-"))})
		if err != nil {
			return nil, engineError(ctx, env.StartFailed, "list volumes", err)
		}
		for _, v := range list.Volumes {
			if volumePattern.MatchString(v.Name) {
				leftovers = append(leftovers, Leftover{Kind: KindVolume, Name: v.Name, Created: parseTime(v.CreatedAt), IsHelper: true, id: v.Name})
			}
		}
	}
	if !opts.IncludeKept {
		return leftovers, nil
	}
	kept, err := e.KeptImages(ctx, opts.Run, "")
	for _, k := range kept {
		if k.Host != e.owner.Host || isOtherUser(k.User) || k.User == "" && !opts.IncludeUnknown {
			continue
		}
		leftovers = append(leftovers, Leftover{Kind: KindImage, Name: k.Image, Run: k.Run, Instance: k.Instance, Created: k.Created, OwnerUnknown: k.User == "", id: k.Image})
	}
	return leftovers, err
}

// isOtherUser reports whether a label names a user other than this process's.
func isOtherUser(uid string) bool { return uid != "" && uid != strconv.Itoa(os.Getuid()) }

func (e *Engine) isAbandoned(o owner, labels map[string]string, inUse bool) bool {
	switch e.owner.stateOf(o) {
	case ownerDead:
		return true
	case ownerUnknown:
		expires, err := time.Parse(time.RFC3339, labels[labelExpires])
		return err == nil && time.Now().After(expires) && !inUse
	default:
		return false
	}
}

// removeAll removes the leftovers, containers before the objects that they use. It
// returns those that it removed, in the given order.
func (e *Engine) removeAll(ctx context.Context, leftovers []Leftover) ([]Leftover, error) {
	isRemoved, errs := make([]bool, len(leftovers)), make([]error, len(leftovers))
	for _, containers := range []bool{true, false} {
		var g errgroup.Group
		g.SetLimit(maxRemovals)
		for i, l := range leftovers {
			if (l.Kind == KindContainer) != containers {
				continue
			}
			g.Go(func() error {
				if ctx.Err() == nil {
					isRemoved[i], errs[i] = e.removeLeftover(ctx, l)
				}
				return nil // continue with the others; errs has the error
			})
		}
		_ = g.Wait() // always nil
	}
	var removed []Leftover
	for i, l := range leftovers {
		if isRemoved[i] {
			removed = append(removed, l)
		}
	}
	return removed, errors.Join(append(errs, context.Cause(ctx))...)
}

// removeLeftover reports whether this call removed the object.
func (e *Engine) removeLeftover(ctx context.Context, l Leftover) (bool, error) {
	var err error
	switch l.Kind {
	case KindContainer:
		return e.remove(ctx, l.id, removeTimeout)
	case KindVolume:
		err = e.api.VolumeRemove(ctx, l.id, false)
	case KindImage:
		_, err = e.api.ImageRemove(ctx, l.id, image.RemoveOptions{PruneChildren: true})
	}
	switch {
	case err == nil:
		e.setFilled(l.id, false)
		return true, nil
	case errdefs.IsConflict(err) && l.Kind == KindImage:
		return false, fmt.Errorf("remove image %s: a container uses it; remove the container first", l.Name)
	case errdefs.IsNotFound(err), errdefs.IsConflict(err), errdefs.IsPermissionDenied(err):
		return false, nil // removed by another process, or in use
	}
	return false, engineError(ctx, env.StartFailed, fmt.Sprintf("remove %s %s", l.Kind, l.Name), err)
}

func displayName(c container.Summary) string {
	if len(c.Names) == 0 {
		return c.ID
	}
	return strings.TrimPrefix(c.Names[0], "/")
}

// parseTime returns the zero time if s is invalid.
func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

// volumePattern matches the names from volumeName. Labels are not reliable: an
// engine that lacks a volume when it creates a container creates it without labels.
var volumePattern = lazyregexp.New(`^mini-helper-[0-9a-f]{16}-[a-z0-9]+$`)
