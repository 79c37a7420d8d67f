package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// parquetInstance converts the columns of a row to an instance, as if they were JSON.
func parquetInstance(file *parquet.File, columns map[string]any) (Instance, error) {
	row := map[string]json.RawMessage{}
	for _, c := range file.Root().Columns() {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		err := recoverPanic(func() error { // a list may have an unusual schema
			v, err := jsonValue(c, columns[c.Name()])
			if err != nil {
				return err
			}
			return enc.Encode(v)
		})
		if err == nil && b.Len() > maxRow {
			err = fmt.Errorf("longer than %d MB", maxRow>>20)
		}
		if err != nil {
			return Instance{}, fmt.Errorf("column %s: %w", printable(c.Name()), err)
		}
		row[c.Name()] = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	return fromColumns(row)
}

var errMap = errors.New("mini cannot read columns of type map; write it as a group or as a string")

// jsonValue converts a value of a column to the form that the Hugging Face hub uses in
// JSON. Numbers that JSON cannot represent become null, and bytes that are not UTF-8
// become base64.
func jsonValue(c *parquet.Column, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := logicalType(c).(*format.MapType); ok {
			return nil, errMap
		}
		for _, child := range c.Columns() {
			var err error
			if v[child.Name()], err = jsonValue(child, v[child.Name()]); err != nil {
				return nil, err
			}
		}
	case []any:
		if _, ok := logicalType(c).(*format.ListType); ok {
			c = c.Columns()[0].Columns()[0]
		}
		for i, e := range v {
			var err error
			if v[i], err = jsonValue(c, e); err != nil {
				return nil, err
			}
		}
	case string:
		return textOrBase64([]byte(v)), nil
	case []byte:
		return textOrBase64(v), nil
	case float32:
		return finiteOrNil(v), nil
	case float64:
		return finiteOrNil(v), nil
	case int32:
		return integerOrTime(logicalType(c), int64(v), uint64(uint32(v))), nil
	case int64:
		return integerOrTime(logicalType(c), v, uint64(v)), nil
	}
	return v, nil
}

// logicalType returns the logical type of a column; nil if it has none.
func logicalType(c *parquet.Column) format.LogicalTypeValue {
	if t := c.Type().LogicalType(); t != nil {
		return t.Value
	}
	return nil
}

func textOrBase64(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func finiteOrNil[F float32 | float64](f F) any {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return nil
	}
	return f
}

// integerOrTime returns a number, or a time that is stored as a number. Timestamps have the
// form of the Hugging Face hub: 2024-05-06T07:08:09.000010, followed by Z if the column
// is adjusted to UTC.
func integerOrTime(meaning format.LogicalTypeValue, n int64, unsigned uint64) any {
	switch m := meaning.(type) {
	case *format.TimestampType:
		return formatTime(sinceEpoch(n, m.Unit), m.IsAdjustedToUTC)
	case *format.DateType:
		return time.Unix(n*86400, 0).UTC().Format(time.DateOnly)
	case *format.IntType:
		if !m.IsSigned {
			return unsigned
		}
	}
	return n
}

// sinceEpoch returns the time n units after the start of 1970 (UTC).
func sinceEpoch(n int64, unit format.TimeUnit) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(n/1e9, n%1e9).UTC()
}

// formatTime formats a time with the fraction of the second: six digits, or nine if necessary;
// none if it is 0.
func formatTime(t time.Time, utc bool) string {
	s := t.Format("2006-01-02T15:04:05")
	switch n := t.Nanosecond(); {
	case n == 0:
	case n%1000 == 0:
		s += fmt.Sprintf(".%06d", n/1000)
	default:
		s += fmt.Sprintf(".%09d", n)
	}
	if utc {
		s += "Z"
	}
	return s
}
