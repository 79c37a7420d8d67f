package trajectories

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
)

// Skim is Scan for who needs records of some types only. The data of others is
// not even looked at, so that what is wrong within it goes unseen; and the data
// of a record is only good until the next one is asked for.
func Skim(name string, r io.Reader, want func(Type) bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l := linesOf(r)
		defer l.release()
		for n := 1; ; n++ {
			line, err := l.next(maxLine)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Record{}, fmt.Errorf("%s:%d: %w", name, n, err))
				return
			}
			whole := err == nil
			if !whole && len(line) == 0 {
				return
			}
			var rec Record
			known := false
			if whole && n > 1 {
				rec, known = head(line)
			}
			if !known {
				if rec, err = parseRecord(line, n == 1); err != nil {
					if whole || errors.Is(err, errFormat) {
						yield(Record{}, fmt.Errorf("%s:%d: %w", name, n, err))
					}
					return // torn
				}
			}
			if want(rec.Type) && !yield(rec, nil) || !whole {
				return
			}
		}
	}
}

// head reads a line that has the form in which a Journal writes it, up to its
// data; false where it has another one.
func head(line []byte) (Record, bool) {
	var r Record
	rest, ok := bytes.CutPrefix(line, []byte(`{"id":`))
	if !ok {
		return r, false
	}
	var id, parent, kind, at []byte
	if id, rest, ok = bytes.Cut(rest, []byte(`,"parent_id":`)); !ok || len(id) > 18 {
		return r, false
	}
	if parent, rest, ok = bytes.Cut(rest, []byte(`,"type":"`)); !ok || len(parent) > 18 {
		return r, false
	}
	if kind, rest, ok = bytes.Cut(rest, []byte(`","time":"`)); !ok || !word(kind) {
		return r, false
	}
	if at, rest, ok = bytes.Cut(rest, []byte(`","data":`)); !ok || len(at) > len(time.RFC3339Nano) {
		return r, false
	}
	if rest, ok = bytes.CutSuffix(rest, []byte("}\n")); !ok || len(rest) == 0 {
		return r, false
	}
	var errs [3]error
	r.ID, errs[0] = strconv.Atoi(string(id))
	r.Parent, errs[1] = strconv.Atoi(string(parent))
	r.Time, errs[2] = time.Parse(time.RFC3339Nano, string(at))
	r.Type, r.Data = Type(kind), rest
	return r, r.ID > 0 && errors.Join(errs[:]...) == nil
}

// word says that a text is the name of a type, and nothing that JSON would
// write in another way.
func word(b []byte) bool {
	for _, c := range b {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return len(b) > 0 && len(b) < 40
}
