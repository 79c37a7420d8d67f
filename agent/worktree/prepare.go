package worktree

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
)

//go:embed inventory.sh
var inventoryScript string

// inventoryTimeout bounds the check of a prepared repository. If the check
// takes longer, Scrub scrubs the repository.
const inventoryTimeout = time.Minute

// PreparationKey identifies the version of Prepare. It contains a hash of the
// scripts.
func PreparationKey() string {
	sum := sha256.Sum256([]byte(gitScript + scrubScript + inventoryScript))
	return "scrub-" + hex.EncodeToString(sum[:8])
}

// preparedNote is the note that Prepare stores with an image.
type preparedNote struct {
	Proof     ScrubReport `json:"proof"`
	Inventory string      `json:"inventory"`
}

// Prepare scrubs the repository of an image, in a sandbox that is saved as an
// image afterwards. Scrub receives the returned note as env.Info.Prepared in
// sandboxes of that image. The note is empty if there is no repository to scrub
// or the scrub was incomplete.
func Prepare(ctx context.Context, sandbox env.Environment) (note string, err error) {
	report, err := Scrub(ctx, sandbox)
	switch {
	case errors.Is(err, ErrNoRepository), errors.Is(err, ErrNotDisposable):
		return "", nil
	case err != nil:
		return "", err
	case !report.IsClean():
		return "", nil // each attempt's scrub reports the incomplete scrub
	}
	sum, err := inventory(ctx, sandbox)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(preparedNote{report, sum})
	if err != nil {
		return "", fmt.Errorf("encode scrub report: %w", err)
	}
	return string(text), nil
}

// inventory returns a hash of all files in which git could find history.
func inventory(ctx context.Context, sandbox env.Environment) (string, error) {
	res, err := execute(ctx, sandbox, inventoryScript, inventoryTimeout)
	if err == nil {
		err = scriptError(res, inventoryTimeout)
	}
	sum := strings.TrimSpace(string(res.Output))
	if err == nil && !isHash(sum) {
		err = fmt.Errorf("invalid hash %.100q", sum)
	}
	if err != nil {
		return "", fmt.Errorf("list git directory: %w", err)
	}
	return sum, nil
}

// checkPrepared returns the report of a prepared image. ok is false if the
// image was not prepared or its repository has changed since. An error means
// that the sandbox is lost or ctx has ended.
func checkPrepared(ctx context.Context, sandbox env.Environment) (report ScrubReport, ok bool, err error) {
	note := sandbox.Info().Prepared
	if note == nil {
		return ScrubReport{}, false, nil
	}
	var prepared preparedNote
	if json.Unmarshal([]byte(note.Note), &prepared) != nil || !isHash(prepared.Inventory) || !prepared.Proof.IsClean() {
		return ScrubReport{}, false, nil //nolint:nilerr // without a valid note, Scrub scrubs the repository
	}
	start := time.Now()
	sum, err := inventory(ctx, sandbox)
	if _, isEnvErr := errors.AsType[*env.Error](err); isEnvErr || err != nil && ctx.Err() != nil {
		return ScrubReport{}, false, err
	}
	prepared.Proof.Prepared, prepared.Proof.Duration = true, time.Since(start)
	return prepared.Proof, err == nil && sum == prepared.Inventory, nil
}
