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

// Labels of the images that sandboxes are kept as.
const (
	labelKept    = "mini.kept"         // when, RFC 3339
	labelAttempt = "mini.kept.attempt" // of the instance, as the run counts
	labelHost    = "mini.kept.host"    // the machine of who kept it, as in owner
)

// keptRepository is what the names of kept images begin with.
const keptRepository = "mini-kept/"

// keepTimeout bounds the making of an image; one of a gigabyte takes seconds.
const keepTimeout = 10 * time.Minute

// Kept is a sandbox that was made an image at its end.
type Kept struct {
	Image    string // its name
	ID       string
	Host     string // of who kept it, as a hash
	User     string // id of the user who kept it; empty where an older mini did
	Run      string // Config.Run
	Instance string // Config.Instance
	Attempt  string
	Since    time.Time
	Bytes    int64 // of all its layers, those of the image it began as among them
}

// Keep makes an image of the container as it is now, to be looked at later:
// files and settings, without processes, tmpfs and volumes. Whoever starts it
// gets the shell in the working directory. The container itself goes on. The
// variables of Config.Env are not in the image: some may be secrets.
func (c *Container) Keep(ctx context.Context, attempt string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	op := "keep " + c.name
	found, err := c.engine.api.ContainerInspect(ctx, c.name)
	if err != nil {
		return "", failure(ctx, env.ContainerDied, op, err)
	}
	labels := found.Config.Labels
	name := keptName(labels[labelRun], labels[labelInstance], attempt)
	_, err = c.engine.api.ContainerCommit(ctx, c.name, container.CommitOptions{
		Reference: name,
		Comment:   "a sandbox of mini, kept",
		Pause:     true,
		// What is left out here is taken from the container, above all its
		// labels: without an owner no container of the image is ever swept.
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
		return "", failure(ctx, env.ContainerDied, op, err)
	}
	return name, nil
}

// keptName is the name of an image: the run is its repository, the instance and
// the attempt its tag, as far as the rules for names allow.
func keptName(run, instance, attempt string) string {
	repository := strings.Trim(notInRepositories.ReplaceAllString(strings.ToLower(run), "-"), "-")
	if repository == "" {
		repository = "task"
	}
	tag := notInNames.ReplaceAllString(instance, "-")
	return keptRepository + short(repository, 100) + ":" + short(tag, 100) + "." + attempt
}

// notInRepositories is more than what may not be in the name of one: signs that
// may be there only now and then are left out too.
var notInRepositories = lazyregexp.New(`[^a-z0-9]+`)

// short keeps the end of a name, where a run and an instance differ from others.
// Names are ASCII.
func short(s string, n int) string { return strings.Trim(s[max(0, len(s)-n):], "-._") }

// Kept lists the images that sandboxes were kept as, oldest first, by whomever.
// Empty arguments stand for every run and every instance.
func (e *Engine) Kept(ctx context.Context, run, instance string) ([]Kept, error) {
	match := filters.NewArgs(filters.Arg("label", labelKept))
	for label, value := range map[string]string{labelRun: run, labelInstance: instance} {
		if value != "" {
			match.Add("label", label+"="+value)
		}
	}
	list, err := e.api.ImageList(ctx, image.ListOptions{Filters: match})
	if err != nil {
		return nil, failure(ctx, env.DaemonUnavailable, "list kept sandboxes", err)
	}
	var kept []Kept
	for _, i := range list {
		for _, name := range i.RepoTags {
			if !strings.HasPrefix(name, keptRepository) {
				continue // somebody's own image, made from one that was kept
			}
			k := Kept{
				Image: name, ID: i.ID, Bytes: i.Size,
				Host: i.Labels[labelHost], User: i.Labels[labelUser], Run: i.Labels[labelRun], Instance: i.Labels[labelInstance], Attempt: i.Labels[labelAttempt],
			}
			k.Since, _ = time.Parse(time.RFC3339, i.Labels[labelKept]) // zero where somebody changed it
			kept = append(kept, k)
		}
	}
	slices.SortStableFunc(kept, func(a, b Kept) int { return a.Since.Compare(b.Since) })
	return kept, nil
}
