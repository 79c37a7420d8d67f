package atif

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func timestamp(r *reader, v json.RawMessage, at *place) (string, bool) {
	s, ok := text(r, v, at)
	if !ok {
		return "", false
	}
	if _, ok := parseTime(s); !ok {
		r.wrong(at, "a time of ISO 8601 is needed, got %.60q", s)
		return "", false
	}
	return s, true
}

// The forms of ISO 8601 that the reference takes, which is Python's
// datetime.fromisoformat: the date alone or with a time after any one
// character, both with or without their separators, also by weeks.
var (
	dateForm = regexp.MustCompile(`^(\d{4})(?:-(\d\d)-(\d\d)|(\d\d)(\d\d)|-W(\d\d)(?:-([1-7]))?|W(\d\d)([1-7])?)`)
	timeForm = regexp.MustCompile(`^(\d\d)(?::(\d\d)(?::(\d\d))?|(\d\d)(\d\d)?)?(?:[.,](\d*)| )?`)
	zoneForm = regexp.MustCompile(`^([+-])(\d\d)(?::(\d\d)(?::(\d\d)(?:[.,]\d*)?)?|(\d\d)(?:(\d\d)(?:[.,]\d*)?)?)?$`)
)

// parseTime reads a time stamp; one without a zone is taken for UTC.
func parseTime(s string) (time.Time, bool) {
	s = strings.ReplaceAll(s, "Z", "+00:00")
	d := dateForm.FindStringSubmatch(s)
	if d == nil {
		return time.Time{}, false
	}
	day, ok := date(d)
	if !ok {
		return time.Time{}, false
	}
	rest := s[len(d[0]):]
	if rest == "" {
		return day, true
	}
	separator := []rune(rest)[0]
	rest = rest[len(string(separator)):]
	c := timeForm.FindStringSubmatch(rest)
	if c == nil {
		return time.Time{}, false
	}
	hour, minute, second := number2(c[1]), number2(c[2]+c[4]), number2(c[3]+c[5])
	if hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	nano, _ := strconv.Atoi((c[6] + "000000000")[:9])
	offset, ok := zone(rest[len(c[0]):])
	if !ok {
		return time.Time{}, false
	}
	of := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, second, nano, time.UTC)
	return of.Add(-offset), true
}

// date is the day that a match of dateForm says.
func date(d []string) (time.Time, bool) {
	year := number2(d[1])
	if year == 0 {
		return time.Time{}, false
	}
	if week := number2(d[6] + d[8]); d[6]+d[8] != "" {
		weekday := max(1, number2(d[7]+d[9]))
		fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC) // is in week 1
		monday := fourth.AddDate(0, 0, -(int(fourth.Weekday())+6)%7)
		day := monday.AddDate(0, 0, 7*(week-1)+weekday-1)
		y, w := day.ISOWeek()
		return day, y == year && w == week
	}
	month, number := number2(d[2]+d[4]), number2(d[3]+d[5])
	day := time.Date(year, time.Month(month), number, 0, 0, 0, 0, time.UTC)
	return day, day.Month() == time.Month(month) && day.Day() == number
}

// zone is how much a time is ahead of UTC.
func zone(s string) (time.Duration, bool) {
	if s == "" {
		return 0, true
	}
	z := zoneForm.FindStringSubmatch(s)
	if z == nil {
		return 0, false
	}
	hours, minutes, seconds := number2(z[2]), number2(z[3]+z[5]), number2(z[4]+z[6])
	ahead := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second
	if ahead >= 24*time.Hour {
		return 0, false
	}
	if z[1] == "-" {
		ahead = -ahead
	}
	return ahead, true
}

// number2 reads digits; none are 0.
func number2(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
