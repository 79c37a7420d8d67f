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

// inventoryTimeout bounds the check of a prepared repository. Where it takes
// longer a scrub does.
const inventoryTimeout = time.Minute

// PreparationKey names what Prepare does: it changes whenever its scripts do.
func PreparationKey() string {
	sum := sha256.Sum256([]byte(gitScript + scrubScript + inventoryScript))
	return "scrub-" + hex.EncodeToString(sum[:8])
}

// prepared is the note that Prepare leaves with an image.
type prepared struct {
	Proof     Proof  `json:"proof"`
	Inventory string `json:"inventory"`
}

// Prepare scrubs the repository of an image, in a sandbox whose files are then
// made an image. It returns the note that Scrub in sandboxes of that image gets as
// env.Info.Prepared; an empty one where there is nothing that can be prepared.
func Prepare(ctx context.Context, box env.Environment) (note string, err error) {
	proof, err := Scrub(ctx, box)
	switch {
	case errors.Is(err, ErrNoRepository), errors.Is(err, ErrNotDisposable):
		return "", nil
	case err != nil:
		return "", err
	case !proof.Holds():
		return "", nil // every attempt says so
	}
	sum, err := inventory(ctx, box)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(prepared{proof, sum})
	if err != nil {
		return "", fmt.Errorf("note proof: %w", err)
	}
	return string(text), nil
}

// inventory is a hash of everything in which git could find history.
func inventory(ctx context.Context, box env.Environment) (string, error) {
	res, err := execute(ctx, box, inventoryScript, inventoryTimeout)
	if err == nil {
		err = fail(res, inventoryTimeout)
	}
	sum := strings.TrimSpace(string(res.Output))
	if err == nil && !isHash(sum) {
		err = fmt.Errorf("its answer is %.100q", sum)
	}
	if err != nil {
		return "", fmt.Errorf("list git directory: %w", err)
	}
	return sum, nil
}

// stillPrepared returns the proof that a prepared image came with, if the
// repository is what it was then. An error says that the sandbox is lost.
func stillPrepared(ctx context.Context, box env.Environment) (p Proof, ok bool, err error) {
	note := box.Info().Prepared
	if note == nil {
		return Proof{}, false, nil
	}
	var was prepared
	if json.Unmarshal([]byte(note.Note), &was) != nil || !isHash(was.Inventory) || !was.Proof.Holds() {
		return Proof{}, false, nil //nolint:nilerr // a note that cannot be read means a scrub
	}
	start := time.Now()
	sum, err := inventory(ctx, box)
	if _, lost := errors.AsType[*env.Error](err); lost || err != nil && ctx.Err() != nil {
		return Proof{}, false, err
	}
	was.Proof.Prepared, was.Proof.Duration = true, time.Since(start)
	return was.Proof, err == nil && sum == was.Inventory, nil
}
