package process

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/minibench/mini/env"
)

// split calls feed with chunks of data, of the sizes in cuts, then one byte each.
func split(data, cuts []byte, feed func([]byte)) {
	for i := 0; len(data) > 0; i++ {
		n := 1
		if i < len(cuts) {
			n = int(cuts[i]) + 1
		}
		n = min(n, len(data))
		feed(data[:n])
		data = data[n:]
	}
}

func FuzzChars(f *testing.F) {
	f.Add([]byte("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), []byte{0, 0, 0})
	f.Add([]byte("\xff\xe2\x82a\xf0\x9f\x98\xc3\xc3\xa9"), []byte{})
	f.Add([]byte("\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80\xf0\x9f"), []byte{2, 1})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		var c charCounter
		split(data, cuts, c.add)
		if want := int64(utf8.RuneCount(data)); c.total() != want {
			t.Errorf("%d characters in %q cut at %v, want %d", c.total(), data, cuts, want)
		}
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("\n  SUBMIT\nrest"), []byte{0, 3}, uint32(0))
	f.Add([]byte("SUBMITTED"), []byte{}, uint32(200_000))
	f.Add([]byte(" \xe2\x80\x83SUBMIT"), []byte{1}, uint32(70_000))
	f.Fuzz(func(t *testing.T, data, cuts []byte, size uint32) {
		// A long stream follows the fuzzed beginning.
		data = append(data, bytes.Repeat([]byte("0123456789abcde\n"), int(size%(1<<20))/16)...)
		var kept bytes.Buffer
		o := NewOutputLimiter(&kept, env.MinOutputLimit, []string{"SUBMIT"})
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 4096)
			if len(cuts) > 0 {
				n, cuts = min(len(rest), int(cuts[0])+1), cuts[1:]
			}
			o.add(rest[:n])
			rest = rest[n:]
		}
		var r env.Result
		o.Finish(&r)
		out := kept.Bytes()
		switch {
		case r.Bytes != int64(len(data)) || r.Chars != int64(utf8.RuneCount(data)):
			t.Fatalf("%d bytes, %d characters; want %d, %d", r.Bytes, r.Chars, len(data), utf8.RuneCount(data))
		case !r.Truncated && !bytes.Equal(out, data):
			t.Fatalf("an output of %d bytes that was kept whole has %d", len(data), len(out))
		case r.Truncated && len(data) <= env.MinOutputLimit:
			t.Fatalf("an output of %d bytes was cut", len(data))
		case r.Truncated && (len(out) != env.MinOutputLimit || r.Head != env.MinOutputLimit/2 ||
			!bytes.Equal(out[:r.Head], data[:r.Head]) || !bytes.HasSuffix(data, out[r.Head:])):
			t.Fatalf("kept %d bytes, head %d: not the ends of the stream", len(out), r.Head)
		case r.Truncated == isMarked(data, "SUBMIT") && len(data) > env.MinOutputLimit:
			t.Fatalf("truncated %v, begins with %q", r.Truncated, data[:min(40, len(data))])
		}
	})
}

// isMarked is a simple implementation of the marker rule for a complete output.
func isMarked(data []byte, marker string) bool {
	stripped := bytes.TrimLeftFunc(data[:min(len(data), env.MinOutputLimit/2)], isSpace)
	end := bytes.IndexFunc(stripped, isLineEnd)
	return end >= 0 && string(bytes.TrimRightFunc(stripped[:end], isSpace)) == marker
}

func TestTail(t *testing.T) {
	for _, limit := range []int{1, 2, 7, 64} {
		var stream []byte
		kept := tail{max: limit}
		for range 500 {
			chunk := make([]byte, rand.IntN(2*limit+2))
			for i := range chunk {
				chunk[i] = byte(len(stream) + i)
			}
			stream = append(stream, chunk...)
			kept.add(chunk)
			older, newer := kept.parts()
			got := append(bytes.Clone(older), newer...)
			if want := stream[max(0, len(stream)-limit):]; !bytes.Equal(got, want) {
				t.Fatalf("limit %d after %d bytes: kept %v, want %v", limit, len(stream), got, want)
			}
		}
	}
}

// TestSinkFails: after an error of the sink, the limiter counts on but does not write
// any more.
func TestSinkFails(t *testing.T) {
	w := &failingSink{}
	o := NewOutputLimiter(w, 0, nil)
	for range 10 {
		o.add(make([]byte, 100_000))
	}
	var r env.Result
	o.Finish(&r)
	if r.Bytes != 1_000_000 || w.calls != 1 {
		t.Errorf("%d bytes counted, %d writes; want 1000000, 1", r.Bytes, w.calls)
	}
}

type failingSink struct{ calls int }

func (b *failingSink) Write([]byte) (int, error) {
	b.calls++
	return 0, bytes.ErrTooLarge
}
