package check

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
)

// longestLine is the longest line that is looked into, in bytes; longer ones, as
// of a submission of many megabytes, are passed over with a note, up to maxLine,
// which no journal may go beyond.
const (
	longestLine = 64 << 20
	maxLine     = 512 << 20
)

// journal goes through the lines of a journal. It goes on after a line that is
// wrong, and holds one line at a time.
type journal struct {
	*Report
	line   int
	last   int  // the newest id
	blind  bool // the line before could not be read: ids may be missing
	header bool
	seen   []span // of ids
	talk   conversation
	odd    map[trajectories.Type]int
	oddAt  map[trajectories.Type]int
}

// span are ids that follow each other.
type span struct{ from, to int }

func checkJournal(r io.Reader, limit int) *Report {
	j := journal{Report: &Report{Format: trajectories.Format}, odd: map[trajectories.Type]int{}, oddAt: map[trajectories.Type]int{}}
	j.talk.Report = j.Report
	in := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for j.line = 1; ; j.line++ {
		line, size, err := readLine(in, buf[:0], limit)
		buf = line
		if err != nil && !errors.Is(err, io.EOF) {
			j.problem(j.line, "", "%s", reason(err))
			break
		}
		if size == 0 {
			break
		}
		if !j.take(line, size, err == nil) {
			return j.Report // of a version that is not known
		}
		if j.full {
			break
		}
		if err != nil {
			break
		}
	}
	j.end()
	return j.Report
}

// readLine reads a line with its line feed. Of one that is longer than limit it
// returns the size alone.
func readLine(in *bufio.Reader, buf []byte, limit int) ([]byte, int, error) {
	size := 0
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= limit {
			buf = append(buf, part...)
		}
		if size > maxLine {
			return nil, size, fmt.Errorf("the line has more than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if size > limit {
				buf = nil
			}
			return buf, size, err
		}
	}
}

// take checks a line; false ends the journal.
func (j *journal) take(line []byte, size int, whole bool) bool {
	if line == nil {
		j.note(j.line, "", "a line of %d bytes was not looked into", size)
		j.unread()
		return true
	}
	var r struct {
		ID     json.RawMessage `json:"id"`
		Parent json.RawMessage `json:"parent_id"`
		Type   json.RawMessage `json:"type"`
		Time   json.RawMessage `json:"time"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		switch {
		case !whole && j.header:
			j.note(j.line, "", "the last line is torn, and counts for nothing")
		case !whole:
			j.problem(j.line, "", "torn before the header was written")
			j.header = true // is said
		default:
			j.problem(j.line, "", "not a record: %s", plain(err))
			j.unread()
		}
		return true
	}
	if !utf8.Valid(line) {
		j.problem(j.line, "", "not UTF-8")
	}
	j.twice("", line)
	rec := trajectories.Record{
		ID:     field[int](j, "id", r.ID),
		Parent: field[int](j, "parent_id", r.Parent),
		Type:   field[trajectories.Type](j, "type", r.Type),
		Time:   field[time.Time](j, "time", r.Time),
		Data:   r.Data,
	}
	j.place(rec)
	return j.record(rec)
}

// unread says that a record is not known, nor its id.
func (j *journal) unread() {
	j.blind = true
	j.talk.unread()
}

// field reads a part of a record, which may not be missing.
func field[T any](j *journal, name string, raw json.RawMessage) T {
	var v T
	switch {
	case raw == nil:
		j.problem(j.line, name, "required field is missing")
	case string(raw) == "null":
		j.problem(j.line, name, "%s is needed, this is null", wanted(v))
	default:
		if err := json.Unmarshal(raw, &v); err != nil {
			j.problem(j.line, name, "%s is needed, this is %s", wanted(v), trajectories.KindOf(raw))
		}
	}
	return v
}

// place checks where a record stands in the tree: ids count up from 1, and each
// parent is an earlier record.
func (j *journal) place(r trajectories.Record) {
	switch {
	case r.ID == 0: // is said
		j.unread()
		return
	case r.ID < 1:
		j.problem(j.line, "id", "%d is less than 1", r.ID)
		j.unread()
		return
	case r.ID <= j.last:
		j.problem(j.line, "id", "%d is not after %d, the id before it", r.ID, j.last)
	case r.ID != j.last+1 && !j.blind:
		j.problem(j.line, "id", "%d is needed after %d, got %d", j.last+1, j.last, r.ID)
	}
	gap := j.blind && r.ID > j.last // may be what could not be read
	j.blind = j.blind && r.ID <= j.last
	switch {
	case r.Parent == r.ID:
		j.problem(j.line, "parent_id", "%d is the record itself", r.Parent)
	case r.Parent > r.ID:
		j.problem(j.line, "parent_id", "%d is a later record: a parent is an earlier one", r.Parent)
	case r.Parent == 0 && j.last > 0:
		j.problem(j.line, "parent_id", "only the first record has no parent")
	case r.Parent < 0 || r.Parent > 0 && !j.has(r.Parent) && (!gap || r.Parent <= j.last):
		j.problem(j.line, "parent_id", "there is no record %d", r.Parent)
	case r.Parent > 0 && r.Parent < j.last && r.ID > j.last && r.Type != trajectories.TypeResume && r.Type != "":
		j.problem(j.line, "parent_id", "%d is not the record before this one; only a resume record follows another", r.Parent)
		j.talk.branched = true
	case r.Parent > 0 && r.Parent < j.last && !j.talk.branched:
		j.note(j.line, "parent_id", "the journal branches after record %d; from here on only the records are checked, not the conversation", r.Parent)
		j.talk.branched = true
	}
	if r.ID <= j.last {
		return
	}
	j.last = r.ID
	if n := len(j.seen); n > 0 && (j.seen[n-1].to == r.ID-1 || gap) {
		j.seen[n-1].to = r.ID
	} else {
		j.seen = append(j.seen, span{r.ID, r.ID})
	}
}

func (j *journal) has(id int) bool {
	return slices.ContainsFunc(j.seen, func(s span) bool { return s.from <= id && id <= s.to })
}

// record checks what a record holds; false ends the journal.
func (j *journal) record(r trajectories.Record) bool {
	first := !j.header
	j.header = true
	if first && r.Type != trajectories.TypeHeader {
		j.problem(j.line, "type", "the first record is the header, got %.60q", r.Type)
	}
	if !first && r.Type == trajectories.TypeHeader {
		j.problem(j.line, "type", "only the first record is the header")
	}
	if k := trajectories.KindOf(r.Data); k != "an object" {
		if r.Data == nil {
			k = "nothing"
		}
		j.problem(j.line, "data", "an object is needed, this is %s", k)
		return true
	}
	known, ok := shapes[r.Type]
	if !ok {
		if r.Type != "" {
			if j.odd[r.Type]++; j.odd[r.Type] == 1 && len(j.odd) <= maxProblems {
				j.oddAt[r.Type] = j.line
			}
		}
		return true
	}
	j.twice("data", r.Data)
	before := len(j.Problems)
	data := j.data(known, r.Data)
	if h, ok := data.(*trajectories.Header); ok && h.Format != "" && h.Format != trajectories.Format {
		j.problem(j.line, "data.format", "%.60q is not known, %q is", h.Format, trajectories.Format)
		return false
	}
	if len(j.Problems) == before {
		j.refers(r, data)
	}
	j.talk.hear(j.line, r, data, len(j.Problems) == before)
	return true
}

// refers checks that what a record says of others is of earlier ones.
func (j *journal) refers(r trajectories.Record, data any) {
	earlier := func(path string, id int) {
		if id >= r.ID || !j.has(id) {
			j.problem(j.line, path, "there is no record %d before this one", id)
		}
	}
	switch d := data.(type) {
	case *trajectories.Resume:
		earlier("data.record", d.Record)
	case *trajectories.Replay:
		earlier("data.record", d.Record)
	case *trajectories.Compaction:
		last := 0
		for i, p := range d.Replaced {
			at := fmt.Sprintf("data.replaced.%d", i)
			earlier(at+".from", p.From)
			earlier(at+".to", p.To)
			if p.From > p.To {
				j.problem(j.line, at, "from %d to %d", p.From, p.To)
			}
			if p.From <= last {
				j.problem(j.line, at, "from %d, which is not after %d, where the one before it ends", p.From, last)
			}
			last = p.To
		}
	case *trajectories.Context:
		for i, p := range d.Sent {
			if p.Message != nil {
				continue
			}
			at := fmt.Sprintf("data.sent.%d", i)
			earlier(at+".from", p.From)
			earlier(at+".to", p.To)
			if p.From > p.To {
				j.problem(j.line, at, "from %d to %d", p.From, p.To)
			}
		}
	}
}

// twice finds keys that an object has twice: readers differ in which they take.
func (j *journal) twice(path string, object []byte) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return
	}
	keys := map[string]bool{}
	var value json.RawMessage
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return
		}
		key, _ := t.(string)
		if keys[key] {
			j.problem(j.line, join(path, clip(key)), "the key is there twice")
		}
		keys[key] = true
		if dec.Decode(&value) != nil {
			return
		}
	}
}

func (j *journal) end() {
	if !j.header {
		j.problem(0, "", "there is no header")
	}
	for _, t := range slices.Sorted(maps.Keys(j.oddAt)) {
		j.note(j.oddAt[t], "type", "records of the type %.60q are not known (%d)", t, j.odd[t])
	}
	j.talk.end()
}
