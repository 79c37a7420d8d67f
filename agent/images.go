package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/images"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/model"
)

// ImagesConfig configures which images the model is shown: those of the task,
// and those that the model's commands request.
type ImagesConfig struct {
	// Marker is the prefix of an output line that names an image file in the
	// sandbox, such as "MINI_IMAGE:". The model is shown that file. Empty
	// disables this.
	Marker string `yaml:"marker" json:"marker,omitempty"`
	// Folder holds images that dataset rows name; an image with a URL is stored
	// as host/path.
	Folder string `yaml:"folder" json:"folder,omitempty"`
	// Fetch allows fetching images that rows name by http or https URLs.
	Fetch bool `yaml:"fetch" json:"fetch,omitempty"`

	// Supported reports that the model accepts images. Other models are told
	// that images were left out.
	Supported bool `yaml:"-" json:"-"`
	// Fetcher fetches images if Fetch is set.
	Fetcher images.Fetcher `yaml:"-" json:"-"`
}

// Limits on the images of one observation, and of all prompts of an attempt.
// Every provider accepts a request with that many.
const (
	maxPerObservation = 4
	maxImages         = 50
	maxImagesBytes    = 20 << 20
)

// notSupported tells a model that does not accept images why one is missing.
const notSupported = "this model takes no images"

func (c Config) validateImages() error {
	if m := c.Images.Marker; len(m) > 100 || strings.ContainsAny(m, "\n\r\x00") || m != strings.TrimLeft(m, " \t") {
		return fieldErrorf("images",
			"marker %.60q is not the start of a line; use at most 100 characters, no leading white space and no line break",
			m)
	}
	return nil
}

// imageMarker returns the marker if the model supports images, else "".
func (c Config) imageMarker() string {
	if !c.Images.Supported {
		return ""
	}
	return c.Images.Marker
}

// addTaskImages adds the task's images to m, the task's prompt, and notes about
// images that are left out.
func (r *run) addTaskImages(ctx context.Context, m *model.Message) error {
	refs, more := images.TaskRefs(r.Task.Instance)
	if !r.cfg.Images.Supported {
		if len(refs) > 0 {
			m.Content += "\n\n" + leftOutNote(imageCount(len(refs)), notSupported)
		}
		return nil
	}
	source := images.Source{Folder: r.cfg.Images.Folder}
	if r.cfg.Images.Fetch {
		source.Fetcher = r.cfg.Images.Fetcher
	}
	for _, ref := range refs {
		img, err := source.Load(ctx, ref)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = r.countImage(img)
		}
		if err != nil {
			m.Content += "\n\n" + leftOutNote("image "+shortRef(ref), "it is not at hand")
			r.warnings = append(r.warnings, fmt.Sprintf("image of the task left out: %s: %v", shortRef(ref), err))
			continue
		}
		m.Images = append(m.Images, img)
	}
	if more {
		m.Content += "\n\n" + leftOutNote("more images", "there are too many")
	}
	return nil
}

// addOutputImages adds the images that an output requests to the message with
// the output. An error comes from the sandbox or from the end of ctx.
func (r *run) addOutputImages(ctx context.Context, m *model.Message, res env.Result) error {
	if r.cfg.Images.Marker == "" {
		return nil
	}
	files, more := images.MarkedFiles(res.Output, r.cfg.Images.Marker, maxPerObservation)
	for _, file := range files {
		if !r.cfg.Images.Supported {
			m.Content += "\n" + leftOutNote("image", notSupported)
			return nil
		}
		img, reason, err := images.ReadFromSandbox(ctx, r.Environment, file)
		if err != nil {
			return causeOrErr(ctx, err)
		}
		if reason == nil {
			reason = r.countImage(img)
		}
		if reason != nil {
			m.Content += "\n" + leftOutNote("image "+shortRef(file), reason.Error())
			continue
		}
		m.Images = append(m.Images, img)
	}
	if more {
		m.Content += "\n" + leftOutNote("more images", fmt.Sprintf("at most %d are shown at a time", maxPerObservation))
	}
	return nil
}

// countImage adds an image to the attempt's totals. If that would exceed a
// limit, it returns an error for the model.
func (r *run) countImage(img model.Image) error {
	if r.imageCount+1 > maxImages || r.imageBytes+len(img.Data) > maxImagesBytes {
		return errors.New("as many as one conversation can hold were shown already")
	}
	r.imageCount++
	r.imageBytes += len(img.Data)
	return nil
}

func imageCount(images int) string {
	if images == 1 {
		return "image"
	}
	return fmt.Sprintf("%d images", images)
}

// leftOutNote tells the model that an image was left out.
func leftOutNote(what, reason string) string { return "[" + what + " left out: " + reason + "]" }

// shortRef returns a reference fit for a prompt: bounded, on one line.
func shortRef(ref string) string {
	const limit = 200
	if strings.HasPrefix(ref, "data:") {
		return "a data URI"
	}
	ref = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(ref, "?"))
	return text.ClipRunes(ref, limit)
}
