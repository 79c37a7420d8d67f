package datasets

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// writer builds the JSON of one column, up to maxRow bytes: a parquet file can
// name the same large value any number of times.
type writer struct {
	buf bytes.Buffer
	enc *json.Encoder
}

func newWriter() *writer {
	w := &writer{}
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	return w
}

func (w *writer) reset() { w.buf.Reset() }

func (w *writer) copy() json.RawMessage { return bytes.Clone(w.buf.Bytes()) }

func (w *writer) full() error {
	if w.buf.Len() > maxRow {
		return fmt.Errorf("longer than %d MB", maxRow>>20)
	}
	return nil
}

func (w *writer) raw(s string) error {
	w.buf.WriteString(s)
	return w.full()
}

// text writes a JSON string.
func (w *writer) text(s string) {
	_ = w.enc.Encode(s) // a string and a buffer: neither can fail
	w.buf.Truncate(w.buf.Len() - 1)
}

// bytes writes text as it is, and other bytes as base64, as the hub does.
func (w *writer) bytes(b []byte) {
	if utf8.Valid(b) {
		w.text(string(b))
		return
	}
	w.text(base64.StdEncoding.EncodeToString(b))
}

// float writes a number; what JSON has no number for becomes null.
func (w *writer) float(f float64, bits int) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.buf.WriteString("null")
		return
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	w.buf.Write(strconv.AppendFloat(w.buf.AvailableBuffer(), f, form, -1, bits))
}

func (w *writer) int(i int64) { w.buf.Write(strconv.AppendInt(w.buf.AvailableBuffer(), i, 10)) }

// shower is how values of a type are written. Times have the form that the hub
// gives them in JSON: 2024-05-06T07:08:09.000010, with Z where the file says
// that they are UTC.
func shower(t parquet.Type) func(*writer, parquet.Value) {
	if lt := t.LogicalType(); lt != nil {
		if show := logical(lt, t); show != nil {
			return show
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return func(w *writer, v parquet.Value) { w.buf.WriteString(strconv.FormatBool(v.Boolean())) }
	case parquet.Int32:
		return func(w *writer, v parquet.Value) { w.int(int64(v.Int32())) }
	case parquet.Int64:
		return func(w *writer, v parquet.Value) { w.int(v.Int64()) }
	case parquet.Int96:
		return func(w *writer, v parquet.Value) { w.text(moment(impala(v), false)) }
	case parquet.Float:
		return func(w *writer, v parquet.Value) { w.float(float64(v.Float()), 32) }
	case parquet.Double:
		return func(w *writer, v parquet.Value) { w.float(v.Double(), 64) }
	}
	return func(w *writer, v parquet.Value) { w.bytes(blob(v)) }
}

// logical is for types that mean more than their bytes; nil for the others.
func logical(lt *format.LogicalType, t parquet.Type) func(*writer, parquet.Value) {
	kind := t.Kind()
	whole := kind == parquet.Int32 || kind == parquet.Int64
	switch lt := lt.Value.(type) {
	case *format.TimestampType:
		if kind == parquet.Int64 {
			return func(w *writer, v parquet.Value) { w.text(moment(since(v.Int64(), lt.Unit), lt.IsAdjustedToUTC)) }
		}
	case *format.DateType:
		if kind == parquet.Int32 {
			return func(w *writer, v parquet.Value) {
				w.text(time.Unix(int64(v.Int32())*86400, 0).UTC().Format(time.DateOnly))
			}
		}
	case *format.TimeType:
		if whole {
			return func(w *writer, v parquet.Value) {
				at := since(integer(v), lt.Unit)
				w.text(at.Format(time.TimeOnly) + fraction(at))
			}
		}
	case *format.IntType:
		if whole && !lt.IsSigned {
			return func(w *writer, v parquet.Value) {
				u := uint64(v.Uint32())
				if v.Kind() == parquet.Int64 {
					u = v.Uint64()
				}
				w.buf.Write(strconv.AppendUint(w.buf.AvailableBuffer(), u, 10))
			}
		}
	case *format.DecimalType:
		if lt.Scale >= 0 && lt.Scale <= 1000 {
			return func(w *writer, v parquet.Value) { w.decimal(v, int(lt.Scale)) }
		}
	case *format.UUIDType:
		return func(w *writer, v parquet.Value) {
			if b := blob(v); len(b) == 16 {
				w.text(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
				return
			}
			w.bytes(blob(v))
		}
	}
	return nil
}

// blob is the bytes of a value, none where the file has another kind than it
// said: the library does not check.
func blob(v parquet.Value) []byte {
	if k := v.Kind(); k != parquet.ByteArray && k != parquet.FixedLenByteArray {
		return nil
	}
	return v.ByteArray()
}

func integer(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// decimal writes a number with all its digits: value / 10^scale.
func (w *writer) decimal(v parquet.Value, scale int) {
	var unscaled big.Int
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		unscaled.SetInt64(integer(v))
	default:
		b := blob(v)
		if len(b) > 64 { // no number has this many digits
			w.bytes(b)
			return
		}
		unscaled.SetBytes(b) // big-endian, two's complement
		if len(b) > 0 && b[0] >= 0x80 {
			unscaled.Sub(&unscaled, new(big.Int).Lsh(big.NewInt(1), uint(len(b))*8))
		}
	}
	digits, negative := strings.CutPrefix(unscaled.String(), "-")
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if negative {
		w.buf.WriteByte('-')
	}
	point := len(digits) - scale
	w.buf.WriteString(digits[:point])
	if scale > 0 {
		w.buf.WriteByte('.')
		w.buf.WriteString(digits[point:])
	}
}

// since is the time n units after 1970.
func since(n int64, unit format.TimeUnit) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(n/1e9, n%1e9).UTC()
}

// impala is a time of the old 96-bit kind: nanoseconds of a Julian day.
func impala(v parquet.Value) time.Time {
	const epoch = 2440588 // the Julian day of 1970-01-01
	i := v.Int96()
	var b [12]byte
	for at, word := range i {
		binary.LittleEndian.PutUint32(b[at*4:], word)
	}
	nanos := int64(binary.LittleEndian.Uint64(b[:8]))
	return time.Unix((int64(i[2])-epoch)*86400+nanos/1e9, nanos%1e9).UTC()
}

func moment(t time.Time, utc bool) string {
	s := t.Format("2006-01-02T15:04:05") + fraction(t)
	if utc {
		s += "Z"
	}
	return s
}

// fraction has six digits, or nine where six would lose something.
func fraction(t time.Time) string {
	switch n := t.Nanosecond(); {
	case n == 0:
		return ""
	case n%1000 == 0:
		return fmt.Sprintf(".%06d", n/1000)
	default:
		return fmt.Sprintf(".%09d", n)
	}
}
