package images

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/model"
)

// readScript prints a file of a sandbox. It runs as a command and has the same
// permissions. The file name is in a variable, so the shell does not interpret
// it.
var readScript = fmt.Sprintf(`[ -f "$MINI_IMAGE" ] || exit 3; exec head -c %d -- "$MINI_IMAGE"`, MaxBytes+1)

// readTimeout bounds reading one file.
const readTimeout = 30 * time.Second

// ReadFromSandbox returns the image in a file of a sandbox. reason is a short
// text on why there is none; err is an error of the sandbox.
func ReadFromSandbox(ctx context.Context, sandbox env.Environment, file string) (img model.Image, reason, err error) {
	if strings.ContainsRune(file, 0) || file == "" {
		return img, errors.New("that is no name of a file"), nil
	}
	res, err := sandbox.Execute(ctx, env.Command{
		Script: readScript, Env: map[string]string{"MINI_IMAGE": file},
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
	img, reason = Decode(res.Output)
	return img, reason, nil
}

// MarkedFiles returns the files that an output asks to show: the rest of each
// line that starts with marker, at most limit of them. more reports that there
// are others.
func MarkedFiles(output []byte, marker string, limit int) (files []string, more bool) {
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
