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

// readScript prints the first MaxBytes+1 bytes of a file of a sandbox. It runs
// with the same permissions as the model's commands. The file name is in a
// variable, so the shell does not interpret it.
var readScript = fmt.Sprintf(`[ -f "$MINI_IMAGE" ] || exit 3; exec head -c %d -- "$MINI_IMAGE"`, MaxBytes+1)

// readTimeout bounds reading one file.
const readTimeout = 30 * time.Second

// ReadFromSandbox returns the image in a file of a sandbox. reason says briefly
// why the file has no valid image; err is an error of the sandbox.
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

// MarkedFiles returns the image files that an output names: the rest of each
// line that starts with marker, without surrounding white space. It returns at
// most limit files; more reports that there are others.
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
