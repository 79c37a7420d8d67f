package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/agent/pictures"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// Images says which images a model is shown: those of its task, and those that
// its commands ask for.
type Images struct {
	// Marker is how a line of output begins that names an image file of the
	// sandbox, as "MINI_IMAGE:"; the model is shown that file. Empty means that
	// no line does.
	Marker string `yaml:"marker" json:"marker,omitempty"`
	// Folder holds images that rows name, URLs as host/path.
	Folder string `yaml:"folder" json:"folder,omitempty"`
	// Fetch lets images be fetched that rows name by http or https URLs.
	Fetch bool `yaml:"fetch" json:"fetch,omitempty"`

	// Taken says that the model takes images. One that does not is told so,
	// where there would be some.
	Taken bool `yaml:"-" json:"-"`
	// Fetcher fetches, where Fetch says so.
	Fetcher pictures.Fetcher `yaml:"-" json:"-"`
}

// What one observation, and all prompts of an attempt together, may show: what
// requests of all providers can hold.
const (
	maxShown       = 4
	maxImages      = 50
	maxImagesBytes = 20 << 20
	// fetchedAtOnce bounds the images of a task that are got side by side: a row
	// has a handful, and each may be somewhere slow.
	fetchedAtOnce = 5
)

// notTaken is what a model is told that cannot be shown an image.
const notTaken = "this model takes no images"

func (c Config) validateImages() error {
	if m := c.Images.Marker; len(m) > 100 || strings.ContainsAny(m, "\n\r\x00") || m != strings.TrimLeft(m, " \t") {
		return &FieldError{Field: "images", Err: fmt.Errorf("marker %.60q is not how a line begins", m)}
	}
	return nil
}

// imageMarker is the marker where it does anything.
func (c Config) imageMarker() string {
	if !c.Images.Taken {
		return ""
	}
	return c.Images.Marker
}

// illustrate adds the images of the task to the prompt that tells it.
func (r *run) illustrate(ctx context.Context, m *model.Message) error {
	refs, more := pictures.Refs(r.Task.Instance)
	if !r.cfg.Images.Taken {
		if len(refs) > 0 {
			m.Content += "\n\n" + leftOut(number(len(refs)), notTaken)
		}
		return nil
	}
	source := pictures.Source{Folder: r.cfg.Images.Folder}
	if r.cfg.Images.Fetch {
		source.Fetcher = r.cfg.Images.Fetcher
	}
	for some := range slices.Chunk(refs, fetchedAtOnce) {
		for i, got := range source.All(ctx, some) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := got.Err
			if err == nil {
				err = r.afford(got.Image)
			}
			if err != nil {
				m.Content += "\n\n" + leftOut("image "+shortRef(some[i]), "it is not at hand")
				r.warnings = append(r.warnings, fmt.Sprintf("an image of the task is not shown: %s: %v", shortRef(some[i]), err))
				continue
			}
			m.Images = append(m.Images, got.Image)
		}
	}
	if more {
		m.Content += "\n\n" + leftOut("more images", "there are too many")
	}
	return nil
}

// show adds the images that an output asks for to the message that tells of it.
// An error is the sandbox's.
func (r *run) show(ctx context.Context, m *model.Message, res env.Result) error {
	if r.cfg.Images.Marker == "" {
		return nil
	}
	files, more := pictures.Marked(res.Output, r.cfg.Images.Marker, maxShown)
	for _, file := range files {
		if !r.cfg.Images.Taken {
			m.Content += "\n" + leftOut("image", notTaken)
			return nil
		}
		img, reason, err := pictures.FromSandbox(ctx, r.Environment, file)
		if err != nil {
			return orCause(ctx, err)
		}
		if reason == nil {
			reason = r.afford(img)
		}
		if reason != nil {
			m.Content += "\n" + leftOut("image "+shortRef(file), reason.Error())
			continue
		}
		m.Images = append(m.Images, img)
	}
	if more {
		m.Content += "\n" + leftOut("more images", fmt.Sprintf("at most %d are shown at a time", maxShown))
	}
	return nil
}

// afford counts an image that is shown; the error says that there were enough.
func (r *run) afford(img model.Image) error {
	if r.images+1 > maxImages || r.imagesBytes+len(img.Data) > maxImagesBytes {
		return errors.New("as many as one conversation can hold were shown already")
	}
	r.images++
	r.imagesBytes += len(img.Data)
	return nil
}

func number(images int) string {
	if images == 1 {
		return "image"
	}
	return fmt.Sprintf("%d images", images)
}

// leftOut tells a model of an image that it is not shown.
func leftOut(what, why string) string { return "[" + what + " left out: " + why + "]" }

// shortRef is a name as a prompt may hold it: bounded, on one line.
func shortRef(ref string) string {
	const most = 200
	if strings.HasPrefix(ref, "data:") {
		return "a data URI"
	}
	ref = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(ref, "?"))
	if runes := []rune(ref); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return ref
}
