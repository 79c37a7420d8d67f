package harborrun

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/minibench/mini/env"
)

// Paths of the containers of tasks.
const (
	verifierDir  = "/logs/verifier"
	artifactsDir = "/logs/artifacts"
)

// Bounds of the files with rewards.
const (
	maxRewardFile = 1 << 20
	maxRewards    = 100
	maxRewardName = 200
	maxCTRF       = 16 << 20
)

// RewardError says why there are no rewards. Name is the name of Harbor's error.
type RewardError struct{ Name, Text string }

func (e *RewardError) Error() string { return e.Name + ": " + e.Text }

// readRewards reads the rewards that the tests have written: those of reward.json, or else
// the number in reward.txt.
func readRewards(ctx context.Context, files env.Files) (map[string]float64, error) {
	data, err := readFile(ctx, files, verifierDir+"/reward.json", maxRewardFile)
	isJSON := !errors.Is(err, fs.ErrNotExist)
	if !isJSON {
		data, err = readFile(ctx, files, verifierDir+"/reward.txt", maxRewardFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &RewardError{"RewardFileNotFoundError", "the tests have written neither reward.json nor reward.txt"}
	case err != nil:
		return nil, err
	case len(bytes.TrimSpace(data)) == 0:
		return nil, &RewardError{"RewardFileEmptyError", "the file of the rewards is empty"}
	case isJSON:
		return parseRewards(data)
	}
	n, err := parseNumber(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, &RewardError{"VerifierOutputParseError", fmt.Sprintf("reward.txt: %v", err)}
	}
	return map[string]float64{"reward": n}, nil
}

func parseRewards(data []byte) (map[string]float64, error) {
	invalid := func(format string, args ...any) (map[string]float64, error) {
		return nil, &RewardError{"VerifierOutputParseError", "reward.json: " + fmt.Sprintf(format, args...)}
	}
	var all map[string]json.Number
	if err := json.Unmarshal(data, &all); err != nil {
		return invalid("it is not a map of numbers: %.200s", err)
	}
	if len(all) == 0 || len(all) > maxRewards {
		return invalid("it has %d rewards; 1 to %d are read", len(all), maxRewards)
	}
	rewards := map[string]float64{}
	for name, text := range all {
		n, err := parseNumber(text.String())
		if err != nil || len(name) > maxRewardName {
			return invalid("%.80q: %v", name, err)
		}
		rewards[name] = n
	}
	return rewards, nil
}

func parseNumber(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%.40q is not a finite number", text)
	}
	return n, nil
}

// combineRewards combines the rewards of steps: those of the last step, or the mean of each
// name over all steps, where a missing reward counts as 0.
func combineRewards(strategy string, steps []map[string]float64) map[string]float64 {
	if strategy == "final" || len(steps) == 1 {
		return steps[len(steps)-1]
	}
	sum := map[string]float64{}
	for _, rewards := range steps {
		for _, name := range slices.Sorted(maps.Keys(rewards)) {
			sum[name] += rewards[name]
		}
	}
	for name := range sum {
		sum[name] /= float64(len(steps))
	}
	if len(sum) == 0 {
		return nil
	}
	return sum
}

// readFile reads a regular file of a container.
func readFile(ctx context.Context, files env.Files, name string, limit int64) ([]byte, error) {
	var stream bytes.Buffer
	w := &boundedWriter{w: &stream, left: limit + 64<<10}
	if err := files.Get(ctx, name, w); err != nil {
		if w.left < 0 {
			return nil, &RewardError{"VerifierOutputParseError", fmt.Sprintf("%s is larger than %d bytes", name, limit)}
		}
		_, isEnv := errors.AsType[*env.Error](err)
		if isEnv || ctx.Err() != nil || errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, &RewardError{"VerifierOutputParseError", fmt.Sprintf("%s cannot be read: %v", name, err)} // a pipe, a device
	}
	r := tar.NewReader(&stream)
	h, err := r.Next()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil, &RewardError{"VerifierOutputParseError", name + " is not a regular file"}
	}
	return io.ReadAll(io.LimitReader(r, limit))
}

// errTooLarge is the error of a boundedWriter.
var errTooLarge = errors.New("too large")

// boundedWriter fails after so many bytes.
type boundedWriter struct {
	w    io.Writer
	left int64
}

// Write implements io.Writer.
func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errTooLarge
	}
	return b.w.Write(p)
}
