package pictures

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// Script prints a file of a sandbox. It goes the way of commands, and so has
// their rights and no others; the name is in a variable, which no shell reads
// as anything else.
var Script = fmt.Sprintf(`[ -f "$MINI_IMAGE" ] || exit 3; exec head -c %d -- "$MINI_IMAGE"`, MaxBytes+1)

// readTimeout bounds reading one file.
const readTimeout = 30 * time.Second

// FromSandbox is the image in a file of a sandbox. Reason says in few words why
// there is none; an error is the sandbox's own.
func FromSandbox(ctx context.Context, box env.Environment, file string) (img model.Image, reason, err error) {
	if strings.ContainsRune(file, 0) || file == "" {
		return img, errors.New("that is no name of a file"), nil
	}
	res, err := box.Execute(ctx, env.Command{
		Script: Script, Env: map[string]string{"MINI_IMAGE": file},
		Timeout: readTimeout, OutputLimit: 2 * MaxBytes,
	})
	switch {
	case err != nil:
		return img, nil, err
	case res.ExitCode == 3:
		return img, errors.New("there is no such file"), nil
	case res.ExitCode != 0 || res.Truncated:
		return img, errors.New("it cannot be read"), nil
	}
	img, reason = New(res.Output)
	return img, reason, nil
}

// Marked are the files that an output asks to be shown: the rest of each line
// that begins with the marker, at most limit of them. More says that there are
// others.
func Marked(output []byte, marker string, limit int) (files []string, more bool) {
	for line := range strings.SplitSeq(string(output), "\n") {
		file, ok := strings.CutPrefix(line, marker)
		if !ok {
			continue
		}
		if len(files) == limit {
			return files, true
		}
		files = append(files, strings.TrimSpace(file))
	}
	return files, false
}
