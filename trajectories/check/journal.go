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
	"strings"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats/schema"
)

// longestLine is the longest line that is looked into, in bytes. A longer one ends
// the check, as what stands behind it cannot be understood without it.
const longestLine = 64 << 20

// journal goes through the lines of a journal. It goes on after a line that is
// wrong, and holds one line at a time.
type journal struct {
	*Report
	fields *schema.Reader
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

func checkJournal(in *bufio.Reader) *Report {
	j := journal{Report: &Report{Format: trajectories.Format}, odd: map[trajectories.Type]int{}, oddAt: map[trajectories.Type]int{}}
	j.talk.Report = j.Report
	j.fields = schema.New("", func(path, reason string) { j.problem(j.line, path, "%s", reason) })
	var line []byte
	var err error
	for j.line = 1; err == nil && !j.full; j.line++ {
		line, err = trajectories.ReadLine(in, line[:0], longestLine)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			j.problem(j.line, "", "%s", reason(err))
		case len(line) > 0 && !j.take(line, err == nil):
			return j.Report // of a version that is not known
		}
	}
	j.end()
	return j.Report
}

// take checks a line; false ends the journal.
func (j *journal) take(line []byte, whole bool) bool {
	line = bytes.TrimSpace(line)
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil || trajectories.KindOf(line) != "an object" {
		switch {
		case !whole && j.header:
			j.note(j.line, "", "the last line is torn, and counts for nothing")
		case !whole:
			j.problem(j.line, "", "torn before the header was written")
			j.header = true // is said
		case err != nil:
			j.problem(j.line, "", "not a record: %s", schema.Explain(err))
			j.unread()
		default:
			j.problem(j.line, "", "not a record: an object is needed, this is %s", trajectories.KindOf(line))
			j.unread()
		}
		return true
	}
	if !utf8.Valid(line) {
		j.problem(j.line, "", "not UTF-8")
	}
	j.twice("", line)
	var rec trajectories.Record
	j.fields.Read(line, &rec, "id", "parent_id", "type", "time", "data")
	j.place(rec)
	return j.record(rec)
}

// unread says that a record is not known, nor its id.
func (j *journal) unread() {
	j.blind = true
	j.talk.unread()
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
		if r.Data != nil { // else it is said
			j.problem(j.line, "data", "an object is needed, this is %s", k)
		}
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
			j.problem(j.line, strings.TrimPrefix(path+"."+schema.Key(key), "."), "the key is there twice")
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
