package replay

import (
	"bytes"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// span is when a command ran; its zero value, that nobody knows.
type span struct{ from, to time.Time }

func (s span) unknown() bool { return s.from.IsZero() }

// slack is how far a clock may be off that tells of a command: it may count in
// another zone, and speak of files that were made as the attempt began.
const slack = 36 * time.Hour

// near says whether a time may be what a clock said. A date that is not is
// data, and compared as it stands.
func (s span) near(t time.Time) bool {
	return s.unknown() || t.After(s.from.Add(-slack)) && t.Before(s.to.Add(slack))
}

// today says whether a text that looks like a date is one of the command's time.
func today(found []byte, s span) bool {
	year, month, day := dateIn(string(found))
	if month == 0 || day == 0 {
		return false
	}
	if year > 0 {
		return s.near(date(year, month, day))
	}
	if s.unknown() {
		return true
	}
	for y := s.from.Year(); y <= s.to.Year()+1; y++ {
		if s.near(date(y, month, day)) {
			return true
		}
	}
	return false
}

func date(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 12, 0, 0, 0, time.UTC)
}

// dateIn finds a date among the words of a text; what it does not find is 0.
func dateIn(text string) (year, month, day int) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ':' })
	for i, w := range words {
		if len(w) >= 3 && month == 0 {
			if at := strings.Index("JanFebMarAprMayJunJulAugSepOctNovDec", w[:3]); at >= 0 && at%3 == 0 {
				month = at/3 + 1
				continue
			}
		}
		w, _, _ = strings.Cut(w, "T") // 2024-02-29T12:00
		n, err := strconv.Atoi(w)
		switch {
		case err != nil:
		case len(w) == 8 || len(w) == 14: // 20240229
			if len(w) == 14 {
				n /= 1_000_000
			}
			return n / 10_000, n / 100 % 100, n % 100
		case len(w) == 4 && year == 0:
			year = n
		case len(w) <= 2 && month == 0 && year > 0 && i == 1: // 2024-02-29
			month = n
		case len(w) <= 2 && day == 0:
			day = n
		}
	}
	return year, month, day
}

// epoch says whether a number counts the seconds since 1970, or parts of them,
// up to the command's time.
func epoch(found []byte, s span) bool {
	whole, _, _ := bytes.Cut(found, []byte("."))
	n, err := strconv.ParseInt(string(whole[:10]), 10, 64)
	return err == nil && s.near(time.Unix(n, 0))
}

// ephemeral says whether a port is one that the kernel hands out to who asks for
// any; one that somebody chose is compared as it stands.
func ephemeral(found []byte, _ span) bool {
	n, err := strconv.Atoi(string(found))
	return err == nil && n >= 32768 && n <= 65535
}

// mixed says whether a word has both digits and letters.
func mixed(found []byte, _ span) bool {
	return bytes.ContainsAny(found, digits) && bytes.ContainsFunc(found, unicode.IsLetter)
}

// drawn says whether a name looks like one that was drawn by lot, not chosen:
// its last part has six characters or more, of which five are digits, or a
// letter follows a digit, or a capital a small letter.
func drawn(found []byte, _ span) bool {
	name := found
	if bytes.HasPrefix(name, []byte("tmp")) && len(name) >= 9 {
		return true
	}
	for _, ext := range []string{".o", ".s", ".c", ".tmp", ".log", ".txt", ".json", ".sock", ".py", ".sh"} {
		name = bytes.TrimSuffix(name, []byte(ext))
	}
	part := name[bytes.LastIndexAny(name, "-_.")+1:]
	if len(part) < 6 {
		return false
	}
	var numbers int
	var lower bool
	for _, b := range part {
		switch {
		case b >= '0' && b <= '9':
			numbers++
		case numbers > 0, lower && b >= 'A' && b <= 'Z':
			return true
		default:
			lower = b >= 'a' && b <= 'z'
		}
	}
	return numbers >= 5
}

// squeeze makes runs of what fills a line one character long.
func squeeze(line []byte) []byte {
	const fill = " =-_.*#"
	out := make([]byte, 0, len(line))
	for _, b := range line {
		if n := len(out); n > 0 && out[n-1] == b && strings.IndexByte(fill, b) >= 0 {
			continue
		}
		out = append(out, b)
	}
	return out
}
