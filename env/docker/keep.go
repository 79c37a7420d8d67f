package docker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Labels of kept images.
const (
	labelKept    = "mini.kept"         // time, RFC 3339
	labelAttempt = "mini.kept.attempt" // number of the attempt
	labelHost    = "mini.kept.host"    // owner.Host of the process that kept it
)

// keptRepository is the prefix of the names of kept images.
const keptRepository = "mini-kept/"

// keepTimeout limits a commit. Committing a gigabyte takes seconds.
const keepTimeout = 10 * time.Minute

// KeptImage is a sandbox that was committed to an image.
type KeptImage struct {
	Image    string // name
	ID       string
	Host     string // hash that identifies the host of the process that kept it
	User     string // user id of the process that kept it; empty if an older version of mini did
	Run      string // Config.Run
	Instance string // Config.Instance
	Attempt  string // as passed to Keep
	Created  time.Time
	Bytes    int64 // of all layers, including those of the original image
}

// Keep commits the container to an image, for inspection, and returns the image's name.
// The image contains files and settings, without processes, tmpfs, volumes and the
// variables of Config.Env, which may be secrets. A container started from the image runs
// the shell in the working directory. The original container is paused during the commit
// and then continues.
func (c *Container) Keep(ctx context.Context, attempt string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	op := "keep " + c.name
	found, err := c.engine.api.ContainerInspect(ctx, c.name)
	if err != nil {
		return "", engineError(ctx, env.ContainerDied, op, err)
	}
	labels := found.Config.Labels
	name := keptName(labels[labelRun], labels[labelInstance], attempt)
	_, err = c.engine.api.ContainerCommit(ctx, c.name, container.CommitOptions{
		Reference: name,
		Comment:   "a sandbox of mini, kept",
		Pause:     true,
		// Fields left out here are taken from the container. The owner's labels are
		// cleared, so that Sweep does not remove containers of the image.
		Config: &container.Config{
			Entrypoint: []string{},
			Cmd:        []string{c.client.Hello().Shell},
			WorkingDir: c.info.Dir,
			StopSignal: "SIGTERM",
			Labels: map[string]string{
				labelOwner: "", labelExpires: "", labelPrepared: "", labelPreparedOf: "",
				labelKept: time.Now().UTC().Format(time.RFC3339), labelAttempt: attempt, labelHost: c.engine.owner.Host,
			},
		},
	})
	if err != nil {
		return "", engineError(ctx, env.ContainerDied, op, err)
	}
	return name, nil
}

// keptName returns the name of a kept image: the run becomes the repository, the
// instance and the attempt become the tag, with invalid characters replaced and long
// names shortened.
func keptName(run, instance, attempt string) string {
	repository := strings.Trim(invalidRepositoryChars.ReplaceAllString(strings.ToLower(run), "-"), "-")
	if repository == "" {
		repository = "task"
	}
	tag := invalidNameChars.ReplaceAllString(instance, "-")
	return keptRepository + tail(repository, 100) + ":" + tail(tag, 100) + "." + attempt
}

// invalidRepositoryChars also matches separators, which are valid only in some
// positions of a repository name.
var invalidRepositoryChars = lazyregexp.New(`[^a-z0-9]+`)

// tail shortens a name to its last n bytes, where runs and instances differ, and
// removes separators at both ends. Names are ASCII.
func tail(s string, n int) string { return strings.Trim(s[max(0, len(s)-n):], "-._") }

// KeptImages lists the kept images of all users, oldest first. An empty argument
// matches every run or instance.
func (e *Engine) KeptImages(ctx context.Context, run, instance string) ([]KeptImage, error) {
	match := filters.NewArgs(filters.Arg("label", labelKept))
	for label, value := range map[string]string{labelRun: run, labelInstance: instance} {
		if value != "" {
			match.Add("label", label+"="+value)
		}
	}
	list, err := e.api.ImageList(ctx, image.ListOptions{Filters: match})
	if err != nil {
		return nil, engineError(ctx, env.DaemonUnavailable, "list kept sandboxes", err)
	}
	var kept []KeptImage
	for _, i := range list {
		for _, name := range i.RepoTags {
			if !strings.HasPrefix(name, keptRepository) {
				continue // an image that a user built from a kept one
			}
			k := KeptImage{
				Image: name, ID: i.ID, Bytes: i.Size,
				Host: i.Labels[labelHost], User: i.Labels[labelUser],
				Run: i.Labels[labelRun], Instance: i.Labels[labelInstance], Attempt: i.Labels[labelAttempt],
			}
			k.Created, _ = time.Parse(time.RFC3339, i.Labels[labelKept]) // zero if the label is invalid
			kept = append(kept, k)
		}
	}
	slices.SortStableFunc(kept, func(a, b KeptImage) int { return a.Created.Compare(b.Created) })
	return kept, nil
}
