package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minibench/mini/datasets"
)

// fetch downloads a snapshot. If cached is true, it returns a snapshot from the cache if
// there is one: another process may have downloaded it meanwhile.
func (h *Hub) fetch(ctx context.Context, ref Ref, cached bool) (Snapshot, error) {
	if h.offline {
		return h.fetchOffline(ctx, ref, cached)
	}
	snapshot, err := h.fetchLocked(ctx, ref, cached)
	if errors.Is(err, ErrUnreachable) {
		err = h.withEndpointHint(err, ref)
	}
	if _, complete := errors.AsType[*Error](err); err != nil && !complete {
		err = fmt.Errorf("fetch %s: %w", ref, err)
	}
	return snapshot, err
}

func (h *Hub) fetchLocked(ctx context.Context, ref Ref, cached bool) (Snapshot, error) {
	unlock, err := h.lock(ctx, ref.Repo)
	if err != nil {
		return Snapshot{}, err
	}
	defer unlock()
	if snapshot, ok := h.find(ref); ok && cached {
		return snapshot, nil
	}
	h.progress(Progress{Stage: Resolving, Repo: ref.Repo})
	commit, err := h.commit(ctx, ref)
	if err != nil {
		return Snapshot{}, err
	}
	snapshot, ok := h.find(Ref{Repo: ref.Repo, Revision: commit, Split: ref.Split})
	if ok {
		if ok, err = h.verify(ctx, &snapshot); err != nil {
			return Snapshot{}, err
		}
	}
	if !ok {
		if snapshot, err = h.download(ctx, ref, commit); err != nil {
			return Snapshot{}, err
		}
	}
	snapshot.Revision, snapshot.Fetched = ref.Revision, time.Now().UTC()
	return snapshot, h.record(snapshot)
}

func (h *Hub) fetchOffline(ctx context.Context, ref Ref, cached bool) (Snapshot, error) {
	snapshot, ok := h.find(ref)
	if !ok && h.isDamaged(ref) {
		return Snapshot{}, offlineDamagedError(ref)
	}
	if !ok {
		return Snapshot{}, h.withEndpointHint(h.notCached(ref), ref)
	}
	if cached {
		return snapshot, nil
	}
	intact, err := h.verify(ctx, &snapshot)
	if err == nil && !intact {
		err = offlineDamagedError(ref)
	}
	return snapshot, err
}

func offlineDamagedError(ref Ref) *Error {
	return &Error{
		kind: ErrOffline, Text: ref.String() + " is damaged in the cache, and the network is not to be used",
		Hint: "unset HF_HUB_OFFLINE to download it again",
	}
}

// withEndpointHint replaces the hint of err if the cache has the dataset only from another
// endpoint. Open does not use such a snapshot, because the other hub may have different rows.
func (h *Hub) withEndpointHint(err error, ref Ref) error {
	e, ok := errors.AsType[*Error](err)
	if _, cached := h.find(ref); cached || !ok {
		return err
	}
	for _, other := range h.snapshots(ref.Repo) {
		if !other.matches(ref, other.Endpoint) {
			continue
		}
		hinted := *e
		hinted.Hint = "it is in the cache, fetched from " + printable(other.Endpoint) + ": set HF_ENDPOINT to that"
		if other.Endpoint == DefaultEndpoint {
			hinted.Hint = "it is in the cache, fetched from " + DefaultEndpoint + ": unset HF_ENDPOINT"
		}
		return &hinted
	}
	return err
}

func (h *Hub) notCached(ref Ref) *Error {
	description := ref.String()
	if ref.Split != "" {
		description += ", split " + ref.Split + ","
	}
	return &Error{
		kind: ErrOffline, Text: description + " is not in the cache, and the network is not to be used",
		Hint: "unset HF_HUB_OFFLINE to download it, or use a file: --subset FILE",
	}
}

// download downloads the files of the wanted split.
func (h *Hub) download(ctx context.Context, ref Ref, commit string) (Snapshot, error) {
	entries, err := h.list(ctx, ref, commit)
	if err != nil {
		return Snapshot{}, err
	}
	splits, err := h.readSplits(ctx, ref, commit, entries)
	if err != nil {
		return Snapshot{}, err
	}
	split, err := datasets.PickSplit(splits, ref.Split)
	if err != nil {
		e := &Error{kind: ErrSplit, err: err, Text: fmt.Sprintf("%s: %v", ref, err), Hint: "choose one with --split"}
		if len(splits) == 0 {
			e.Hint = "try " + ref.Repo + "@refs/convert/parquet, the hub's conversion, or use a file: --subset FILE"
		}
		return Snapshot{}, e
	}
	snapshot := Snapshot{Repo: ref.Repo, Commit: commit, Split: split, Endpoint: h.endpoint}
	snapshot.Splits = slices.Sorted(maps.Keys(splits))
	wanted := selectEntries(entries, splits[split])
	m := &progressMeter{notify: h.progress, repo: ref.Repo}
	for _, w := range wanted {
		m.total += w.size
	}
	if err := os.MkdirAll(h.folder(ref.Repo, blobsDir), 0o755); err != nil { //nolint:gosec // as in record
		return Snapshot{}, h.diskError(err, m.total)
	}
	for _, w := range wanted {
		f, err := h.blob(ctx, ref, commit, w, m)
		if err != nil {
			return Snapshot{}, err
		}
		snapshot.Files = append(snapshot.Files, f)
		snapshot.Bytes += f.Size
	}
	return snapshot, nil
}

// readSplits groups the data files by split.
func (h *Hub) readSplits(ctx context.Context, ref Ref, commit string, entries []entry) (map[string][]string, error) {
	var names []string
	var card []byte
	for _, e := range entries {
		if e.name != cardName {
			names = append(names, e.name)
			continue
		}
		var err error
		if card, err = h.card(ctx, ref, commit); err != nil {
			return nil, err
		}
	}
	return splitFiles(names, card), nil
}

// maxCard limits how much of a dataset card is read, in bytes; the YAML header is at the start.
const maxCard = 1 << 20

func (h *Hub) card(ctx context.Context, ref Ref, commit string) ([]byte, error) {
	var card []byte
	err := h.retry(ctx, ref.Repo, func(func()) error {
		resp, err := h.get(ctx, request{url: h.fileURL(ref, commit, cardName), ref: ref})
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // the rest is not needed
		card, err = io.ReadAll(io.LimitReader(resp.Body, maxCard))
		return err
	})
	return card, err
}

// fileURL returns the URL of a file; the hub may redirect it.
func (h *Hub) fileURL(ref Ref, commit, name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return fmt.Sprintf("%s/datasets/%s/resolve/%s/%s", h.endpoint, ref.Repo, commit, strings.Join(parts, "/"))
}

// selectEntries returns the entries with these names, in the order of names.
func selectEntries(entries []entry, names []string) []entry {
	byName := map[string]entry{}
	for _, e := range entries {
		byName[e.name] = e
	}
	var picked []entry
	for _, name := range names {
		picked = append(picked, byName[name])
	}
	return picked
}
