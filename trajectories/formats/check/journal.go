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

// maxLine bounds a line of a journal, in bytes. The check ends at a longer line, since later
// records may depend on it.
const maxLine = 64 << 20

// journalChecker checks a journal line by line. It continues after invalid lines.
type journalChecker struct {
	*Report
	fields       *schema.Reader
	line         int  // number of the current line
	last         int  // the greatest ID so far
	unreadable   bool // a line since record last was unreadable, so IDs may be missing
	hasHeader    bool
	ids          []span // the IDs so far
	conversation conversation
	unknownTypes map[trajectories.Type]int // number of records by unknown type
	unknownLines map[trajectories.Type]int // line of the first record by unknown type
}

// span is a range of record IDs, inclusive.
type span struct{ from, to int }

// checkJournal checks a journal.
func checkJournal(in *bufio.Reader) *Report {
	j := journalChecker{Report: &Report{Format: trajectories.Format}, unknownTypes: map[trajectories.Type]int{}, unknownLines: map[trajectories.Type]int{}}
	j.conversation.Report = j.Report
	j.fields = schema.New("", func(path, reason string) { j.problem(j.line, path, "%s", reason) })
	var line []byte
	var err error
	for j.line = 1; err == nil && !j.truncated; j.line++ {
		line, err = trajectories.ReadLine(in, line[:0], maxLine)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			j.problem(j.line, "", "%s", reason(err))
		case len(line) > 0 && !j.checkLine(line, err == nil):
			return j.Report
		}
	}
	j.finish()
	return j.Report
}

// checkLine checks a line. complete is set if the line ends with a newline. checkLine
// returns false if the rest of the journal cannot be checked.
func (j *journalChecker) checkLine(line []byte, complete bool) bool {
	line = bytes.TrimSpace(line)
	if err := json.Unmarshal(line, new(json.RawMessage)); err != nil || trajectories.JSONKind(line) != "an object" {
		switch {
		case !complete && j.hasHeader:
			j.note(j.line, "", "the last line is incomplete and ignored")
		case !complete:
			j.problem(j.line, "", "the header is incomplete")
			j.hasHeader = true // avoid a second problem
		case err != nil:
			j.problem(j.line, "", "not a record: %s", schema.ShortError(err))
			j.skipRecord()
		default:
			j.problem(j.line, "", "not a record: an object expected, got %s", trajectories.JSONKind(line))
			j.skipRecord()
		}
		return true
	}
	if !utf8.Valid(line) {
		j.problem(j.line, "", "not UTF-8")
	}
	j.checkDuplicateKeys("", line)
	var rec trajectories.Record
	j.fields.Read(line, &rec, "id", "parent_id", "type", "time", "data")
	j.checkPosition(rec)
	return j.checkRecord(rec)
}

// skipRecord relaxes later checks after a record whose ID is unknown.
func (j *journalChecker) skipRecord() {
	j.unreadable = true
	j.conversation.skipRecord()
}

// checkPosition checks the ID and the parent of a record. IDs count from 1, and a parent is
// an earlier record.
func (j *journalChecker) checkPosition(r trajectories.Record) {
	switch {
	case r.ID == 0: // the schema reader reported a missing ID
		j.skipRecord()
		return
	case r.ID < 1:
		j.problem(j.line, "id", "%d is less than 1", r.ID)
		j.skipRecord()
		return
	case r.ID <= j.last:
		j.problem(j.line, "id", "%d is not greater than the preceding id %d", r.ID, j.last)
	case r.ID != j.last+1 && !j.unreadable:
		j.problem(j.line, "id", "%d expected after %d, got %d", j.last+1, j.last, r.ID)
	}
	gap := j.unreadable && r.ID > j.last // IDs are missing because of an unreadable line
	j.unreadable = j.unreadable && r.ID <= j.last
	switch {
	case r.Parent == r.ID:
		j.problem(j.line, "parent_id", "%d is the record itself", r.Parent)
	case r.Parent > r.ID:
		j.problem(j.line, "parent_id", "%d is a later record; a parent must be an earlier one", r.Parent)
	case r.Parent == 0 && j.last > 0:
		j.problem(j.line, "parent_id", "only the first record may have no parent")
	case r.Parent < 0 || r.Parent > 0 && !j.has(r.Parent) && (!gap || r.Parent <= j.last):
		j.problem(j.line, "parent_id", "no record %d", r.Parent)
	case r.Parent > 0 && r.Parent < j.last && r.ID > j.last && r.Type != trajectories.TypeResume && r.Type != "":
		j.problem(j.line, "parent_id", "%d is not the preceding record; only a resume record may follow another one", r.Parent)
		j.conversation.branched = true
	case r.Parent > 0 && r.Parent < j.last && !j.conversation.branched:
		j.note(j.line, "parent_id", "the journal branches after record %d; the conversation is not checked from here on", r.Parent)
		j.conversation.branched = true
	}
	if r.ID <= j.last {
		return
	}
	j.last = r.ID
	if n := len(j.ids); n > 0 && (j.ids[n-1].to == r.ID-1 || gap) {
		j.ids[n-1].to = r.ID
	} else {
		j.ids = append(j.ids, span{r.ID, r.ID})
	}
}

// has reports whether there was a record with the given ID.
func (j *journalChecker) has(id int) bool {
	return slices.ContainsFunc(j.ids, func(s span) bool { return s.from <= id && id <= s.to })
}

// checkRecord checks the data of a record. It returns false if the rest of the
// journal cannot be checked.
func (j *journalChecker) checkRecord(r trajectories.Record) bool {
	first := !j.hasHeader
	j.hasHeader = true
	if first && r.Type != trajectories.TypeHeader {
		j.problem(j.line, "type", "the first record must be the header, got %.60q", r.Type)
	}
	if !first && r.Type == trajectories.TypeHeader {
		j.problem(j.line, "type", "only the first record may be a header")
	}
	if kind := trajectories.JSONKind(r.Data); kind != "an object" {
		if r.Data != nil { // the schema reader reported missing data
			j.problem(j.line, "data", "an object expected, got %s", kind)
		}
		return true
	}
	recordType, ok := recordSchemas[r.Type]
	if !ok {
		if r.Type != "" {
			if j.unknownTypes[r.Type]++; j.unknownTypes[r.Type] == 1 && len(j.unknownTypes) <= maxProblems {
				j.unknownLines[r.Type] = j.line
			}
		}
		return true
	}
	j.checkDuplicateKeys("data", r.Data)
	problemsBefore := len(j.Problems)
	data := j.data(recordType, r.Data)
	if h, ok := data.(*trajectories.Header); ok && h.Format != "" && h.Format != trajectories.Format {
		j.problem(j.line, "data.format", "unknown format %.60q, want %q", h.Format, trajectories.Format)
		return false
	}
	if len(j.Problems) == problemsBefore {
		j.checkReferences(r, data)
	}
	j.conversation.add(j.line, r, data, len(j.Problems) == problemsBefore)
	return true
}

// checkReferences checks that a record refers only to earlier records.
func (j *journalChecker) checkReferences(r trajectories.Record, data any) {
	checkEarlier := func(path string, id int) {
		if id >= r.ID || !j.has(id) {
			j.problem(j.line, path, "no earlier record %d", id)
		}
	}
	switch d := data.(type) {
	case *trajectories.Resume:
		checkEarlier("data.record", d.Record)
	case *trajectories.Replay:
		checkEarlier("data.record", d.Record)
	case *trajectories.Compaction:
		last := 0
		for i, p := range d.Replaced {
			path := fmt.Sprintf("data.replaced.%d", i)
			checkEarlier(path+".from", p.From)
			checkEarlier(path+".to", p.To)
			if p.From > p.To {
				j.problem(j.line, path, "from %d to %d", p.From, p.To)
			}
			if p.From <= last {
				j.problem(j.line, path, "from %d, which is not after %d, the end of the preceding one", p.From, last)
			}
			last = p.To
		}
	case *trajectories.PromptContext:
		for i, p := range d.Sent {
			if p.Message != nil {
				continue
			}
			path := fmt.Sprintf("data.sent.%d", i)
			checkEarlier(path+".from", p.From)
			checkEarlier(path+".to", p.To)
			if p.From > p.To {
				j.problem(j.line, path, "from %d to %d", p.From, p.To)
			}
		}
	}
}

// checkDuplicateKeys reports duplicate keys of an object. JSON libraries differ in which of
// the values they return.
func (j *journalChecker) checkDuplicateKeys(path string, object []byte) {
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
			j.problem(j.line, strings.TrimPrefix(path+"."+schema.QuoteKey(key), "."), "duplicate key")
		}
		keys[key] = true
		if dec.Decode(&value) != nil {
			return
		}
	}
}

// finish checks the end of the journal and adds notes about unknown record types.
func (j *journalChecker) finish() {
	if !j.hasHeader {
		j.problem(0, "", "no header")
	}
	for _, t := range slices.Sorted(maps.Keys(j.unknownLines)) {
		j.note(j.unknownLines[t], "type", "unknown record type %.60q (%d)", t, j.unknownTypes[t])
	}
	j.conversation.finish()
}
