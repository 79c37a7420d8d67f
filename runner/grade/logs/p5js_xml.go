package logs

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

const (
	maxTags = 100_000 // different tags in a log
	maxSeam = 256     // bytes of a tag before the seam where it came together
)

var errTags = errors.New("too many different XML tags")

// dropXML takes elements without attributes out of a text, <tag>...</tag>: the
// leftmost first, from its tag to the nearest end of that name. As many such
// tags as the element has besides the first are put back in its place, so that
// elements of one name nest. It goes on until no element is left; what an element
// stood between may come together as a tag.
//
// The official parser begins anew after each element. This one gives the same
// in one pass. In the text it has passed no tag has its end after it, but for an
// end that comes together at a seam. It works within text, and uses it up.
func dropXML(text []byte) (string, error) {
	x := elements{text: text, lastEnd: map[string]int{}, open: map[string]tags{}}
	if !x.index() {
		return "", errTags
	}
	for x.at < len(x.text) {
		x.step()
		if len(x.open) > maxTags {
			return "", errTags
		}
	}
	return string(x.text[:x.kept]), nil
}

// elements is a text on its way: what is kept of what is passed, then a gap,
// then what is to come.
type elements struct {
	text    []byte
	kept    int             // text[:kept] is kept
	at      int             // text[at:] is to come
	lastEnd map[string]int  // of each name, where its last end is in the text given
	open    map[string]tags // the tags in what is kept
}

// tags are those of one name.
type tags struct {
	first int // where the first is
	count int
}

// index finds the last end of each name.
func (x *elements) index() bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(x.text[at:], '<')
		if i < 0 {
			return len(x.lastEnd) <= maxTags
		}
		at += i
		if name, closing, _ := readTag(x.text[at:]); closing && len(name) > 0 {
			x.lastEnd[string(name)] = at
			if len(x.lastEnd) > maxTags {
				return false
			}
		}
	}
}

// step keeps the text up to the next tag, and keeps the tag or drops its
// element.
func (x *elements) step() {
	i := bytes.IndexByte(x.text[x.at:], '<')
	if i < 0 {
		x.keep(len(x.text) - x.at)
		return
	}
	x.keep(i)
	name, closing, n := readTag(x.text[x.at:])
	switch {
	case len(name) == 0:
		x.keep(1)
	case closing:
		x.keep(n)
	case x.ends(name, n):
		own := bytes.Clone(name) // keep writes over it
		x.at += n
		x.drop(own, 1)
	default:
		x.note(name, x.kept, 1)
		x.keep(n)
	}
}

// keep moves n bytes over the gap.
func (x *elements) keep(n int) {
	if x.kept != x.at {
		copy(x.text[x.kept:], x.text[x.at:x.at+n])
	}
	x.kept += n
	x.at += n
}

// ends says whether an end of this name is to come, n bytes from here or later.
func (x *elements) ends(name []byte, n int) bool {
	last, ok := x.lastEnd[string(name)]
	return ok && last >= x.at+n
}

// note remembers tags in what is kept.
func (x *elements) note(name []byte, at, count int) {
	seen, ok := x.open[string(name)]
	if !ok {
		seen.first = at
	}
	seen.count += count
	x.open[string(name)] = seen
}

// drop drops the element that begins at the gap with so many tags of a name,
// and the elements that come about by that.
func (x *elements) drop(name []byte, count int) {
	tag := append(append([]byte("<"), name...), '>')
	end := append(append([]byte("</"), name...), '>')
	for count > 0 && x.ends(name, 0) {
		inside := x.text[x.at : x.at+bytes.Index(x.text[x.at:], end)]
		count += bytes.Count(inside, tag) - 1
		x.at += len(inside) + len(end)
	}
	if count == 0 {
		x.seam()
		return
	}
	x.note(name, x.kept, count)
	for range count {
		x.kept += copy(x.text[x.kept:], tag)
	}
}

// seam looks for a tag that comes together over the gap.
func (x *elements) seam() {
	start := x.seamStart()
	if start < 0 {
		return
	}
	n := 0 // bytes of the tag after the gap
	for n < len(x.text)-x.at {
		r, size := utf8.DecodeRune(x.text[x.at+n:])
		if !isWord(r) && (n > 0 || r != '/' || x.kept-start > 1) {
			break
		}
		n += size
	}
	if n == len(x.text)-x.at || x.text[x.at+n] != '>' {
		return
	}
	n++
	tag := append(bytes.Clone(x.text[start:x.kept]), x.text[x.at:x.at+n]...)
	name, closing, _ := readTag(tag)
	switch {
	case len(name) == 0:
	case closing:
		x.seamEnd(name, start, n)
	case x.ends(name, n):
		x.kept = start
		x.at += n
		x.drop(name, 1)
	default:
		x.note(name, start, 1)
		x.keep(n)
	}
}

// seamEnd drops the element that an end, come together over the gap, makes.
func (x *elements) seamEnd(name []byte, start, n int) {
	begin, ok := x.open[string(name)]
	if !ok {
		x.keep(n)
		return
	}
	x.forget(x.text[begin.first:start])
	x.kept = begin.first
	x.at += n
	x.drop(name, begin.count-1)
}

// forget takes back the tags in what is kept no longer.
func (x *elements) forget(dropped []byte) {
	for {
		i := bytes.IndexByte(dropped, '<')
		if i < 0 {
			return
		}
		dropped = dropped[i:]
		if name, closing, _ := readTag(dropped); !closing && len(name) > 0 {
			seen := x.open[string(name)]
			if seen.count--; seen.count == 0 {
				delete(x.open, string(name))
			} else {
				x.open[string(name)] = seen
			}
		}
		dropped = dropped[1:]
	}
}

// seamStart is where a tag begins that the kept text ends within, or -1.
func (x *elements) seamStart() int {
	for at := x.kept; at > 0 && x.kept-at < maxSeam; {
		r, size := utf8.DecodeLastRune(x.text[:at])
		at -= size
		switch {
		case r == '<':
			return at
		case r == '/':
			if at > 0 && x.text[at-1] == '<' {
				return at - 1
			}
			return -1
		case !isWord(r):
			return -1
		}
	}
	return -1
}

// readTag reads <name> or </name> at the front of s; n is its length. The name
// is empty where there is no tag.
func readTag(s []byte) (name []byte, closing bool, n int) {
	begin := 1
	if closing = len(s) > 1 && s[1] == '/'; closing {
		begin = 2
	}
	end := begin
	for end < len(s) {
		r, size := utf8.DecodeRune(s[end:])
		if !isWord(r) {
			break
		}
		end += size
	}
	if end == len(s) || s[end] != '>' {
		return nil, closing, 0
	}
	return s[begin:end], closing, end + 1
}
