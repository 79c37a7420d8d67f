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

// fetch brings an edition into the cache. With cached, one that another
// process brought there in the meantime will do.
func (h *Hub) fetch(ctx context.Context, ref Ref, cached bool) (Edition, error) {
	if h.offline {
		return h.fetchOffline(ctx, ref, cached)
	}
	e, err := h.fetchLocked(ctx, ref, cached)
	if errors.Is(err, ErrUnreachable) {
		err = h.hinted(err, ref)
	}
	if _, ours := errors.AsType[*Error](err); err != nil && !ours {
		err = fmt.Errorf("fetch %s: %w", ref, err)
	}
	return e, err
}

func (h *Hub) fetchLocked(ctx context.Context, ref Ref, cached bool) (Edition, error) {
	unlock, err := h.lock(ctx, ref.Repo)
	if err != nil {
		return Edition{}, err
	}
	defer unlock()
	if e, ok := h.find(ref); ok && cached {
		return e, nil
	}
	h.progress(Progress{Stage: Asking, Repo: ref.Repo})
	commit, err := h.commit(ctx, ref)
	if err != nil {
		return Edition{}, err
	}
	e, ok := h.find(Ref{Repo: ref.Repo, Revision: commit, Split: ref.Split})
	if ok {
		if ok, err = h.verify(ctx, &e); err != nil {
			return Edition{}, err
		}
	}
	if !ok {
		if e, err = h.download(ctx, ref, commit); err != nil {
			return Edition{}, err
		}
	}
	e.Revision, e.Fetched = ref.Revision, time.Now().UTC()
	return e, h.record(e)
}

func (h *Hub) fetchOffline(ctx context.Context, ref Ref, cached bool) (Edition, error) {
	e, ok := h.find(ref)
	if !ok && h.torn(ref) {
		return Edition{}, damagedOffline(ref)
	}
	if !ok {
		return Edition{}, h.hinted(h.notCached(ref), ref)
	}
	if cached {
		return e, nil
	}
	whole, err := h.verify(ctx, &e)
	if err == nil && !whole {
		err = damagedOffline(ref)
	}
	return e, err
}

func damagedOffline(ref Ref) *Error {
	return &Error{
		kind: ErrOffline, Text: ref.String() + " is damaged in the cache, and the network is not to be used",
		Hint: "unset HF_HUB_OFFLINE to fetch it anew",
	}
}

// hinted says so where the cache has what was asked for from another endpoint.
// It is not taken unasked: another hub may have other rows under the name.
func (h *Hub) hinted(err error, ref Ref) error {
	e, ours := errors.AsType[*Error](err)
	if _, here := h.find(ref); here || !ours {
		return err
	}
	for _, other := range h.editions(ref.Repo) {
		if !other.serves(ref, other.Endpoint) {
			continue
		}
		better := *e
		better.Hint = "it is in the cache, fetched from " + shown(other.Endpoint) + ": set HF_ENDPOINT to that"
		if other.Endpoint == DefaultEndpoint {
			better.Hint = "it is in the cache, fetched from " + DefaultEndpoint + ": unset HF_ENDPOINT"
		}
		return &better
	}
	return err
}

func (h *Hub) notCached(ref Ref) *Error {
	what := ref.String()
	if ref.Split != "" {
		what += ", split " + ref.Split + ","
	}
	return &Error{
		kind: ErrOffline, Text: what + " is not in the cache, and the network is not to be used",
		Hint: "unset HF_HUB_OFFLINE to fetch it, or give --subset a file",
	}
}

// download brings the files of the wanted split.
func (h *Hub) download(ctx context.Context, ref Ref, commit string) (Edition, error) {
	entries, err := h.list(ctx, ref, commit)
	if err != nil {
		return Edition{}, err
	}
	splits, err := h.arrange(ctx, ref, commit, entries)
	if err != nil {
		return Edition{}, err
	}
	split, err := datasets.PickSplit(splits, ref.Split)
	if err != nil {
		e := &Error{kind: ErrSplit, err: err, Text: fmt.Sprintf("%s: %v", ref, err), Hint: "name one of these with --split"}
		if len(splits) == 0 {
			e.Hint = "try " + ref.Repo + "@refs/convert/parquet, which is what the hub made of it, or a file: --subset FILE"
		}
		return Edition{}, e
	}
	e := Edition{Repo: ref.Repo, Commit: commit, Split: split, Endpoint: h.endpoint, Splits: slices.Sorted(maps.Keys(splits))}
	wanted := pick(entries, splits[split])
	m := &meter{report: h.progress, repo: ref.Repo}
	for _, w := range wanted {
		m.total += w.size
	}
	if err := os.MkdirAll(h.folder(ref.Repo, blobsDir), 0o755); err != nil { //nolint:gosec // as in record
		return Edition{}, h.diskError(err, m.total)
	}
	for _, w := range wanted {
		f, err := h.blob(ctx, ref, commit, w, m)
		if err != nil {
			return Edition{}, err
		}
		e.Files = append(e.Files, f)
		e.Bytes += f.Size
	}
	return e, nil
}

// arrange sorts the data files into splits.
func (h *Hub) arrange(ctx context.Context, ref Ref, commit string, entries []entry) (map[string][]string, error) {
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
	return splitsOf(names, card), nil
}

// maxCard bounds what is read of a dataset card; its YAML is at its head.
const maxCard = 1 << 20

func (h *Hub) card(ctx context.Context, ref Ref, commit string) ([]byte, error) {
	var card []byte
	err := h.retry(ctx, ref.Repo, func(func()) error {
		resp, err := h.get(ctx, request{url: h.fileURL(ref, commit, cardName), ref: ref})
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // what was needed was read
		card, err = io.ReadAll(io.LimitReader(resp.Body, maxCard))
		return err
	})
	return card, err
}

// fileURL is where the hub gives out a file, or says where it is.
func (h *Hub) fileURL(ref Ref, commit, name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return fmt.Sprintf("%s/datasets/%s/resolve/%s/%s", h.endpoint, ref.Repo, commit, strings.Join(parts, "/"))
}

// pick returns the entries with these names, in the order of the names.
func pick(entries []entry, names []string) []entry {
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
