package convert

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/minibench/mini/trajectories"
)

// maxDocument bounds what is held of a file at once, in bytes: all of it, or one
// line of a file of lines. Reading takes up to about five times as much memory.
const maxDocument = 512 << 20

// source is where a trajectory comes from.
type source struct {
	path   string
	sha256 string
	row    int
}

func (s source) base() string { return filepath.Base(s.path) }

// maxName bounds a name, in bytes.
const maxName = 180

// name is the file's, without the endings that say what it is, and so that it can
// be the id of an instance: files may have any name.
func (s source) name() string {
	name := s.base()
	for _, ending := range []string{".json", ".jsonl", ".traj", ".trajectory"} {
		name = strings.TrimSuffix(name, ending)
	}
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r == '\\' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	return cmp.Or(strings.TrimSpace(strings.TrimLeft(name, ".- ")), "attempt")
}

// all finds out whether a file is one document, or a line a conversation.
func all(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		f, src, err := open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = f.Close() }()
		if src.sha256, err = hashOf(f); err != nil {
			yield(nil, err)
			return
		}
		in := bufio.NewReaderSize(f, 64<<10)
		skipMark(in)
		first, err := line(in)
		switch {
		case err != nil:
			yield(nil, err)
		case isJournal(first):
			yield(openJournal(src))
		case !json.Valid(first) || !more(in): // one document, over one line or many
			rest, err := upTo(in, maxDocument-len(first))
			if err != nil {
				yield(nil, err)
				return
			}
			document(src, append(first, rest...), yield)
		default:
			lines(src, first, in, yield)
		}
	}
}

func open(path string) (*os.File, source, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = errors.New("this is not a plain file")
	}
	if err != nil {
		return nil, source{}, unwrapPath(err)
	}
	f, err := os.Open(path) //nolint:gosec // G304: reading the named file is the purpose
	return f, source{path: path}, unwrapPath(err)
}

// unwrapPath leaves out the path, which stands before every message.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func hashOf(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

func skipMark(in *bufio.Reader) {
	if head, _ := in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
}

// line is the next line that is not empty; nothing at the end of the file.
func line(in *bufio.Reader) ([]byte, error) {
	for {
		text, err := trajectories.ReadLine(in, nil, maxDocument)
		switch {
		case errors.Is(err, io.EOF), err == nil && len(bytes.TrimSpace(text)) > 0:
			return text, nil
		case err != nil:
			return nil, unwrapPath(err)
		}
	}
}

var errTooLarge = fmt.Errorf("more than %d MB in one piece, which is not read", maxDocument>>20)

// more says whether anything but white space follows.
func more(in *bufio.Reader) bool {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return false
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)) {
			_ = in.UnreadByte()
			return true
		}
	}
}

func upTo(in io.Reader, limit int) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, unwrapPath(err)
	}
	if len(rest) > limit {
		return nil, errTooLarge
	}
	return rest, nil
}

// lines reads a file of lines: a conversation each, or a message or an event
// each of one conversation.
func lines(src source, first []byte, in *bufio.Reader, yield func(*File, error) bool) {
	if f := formatOf(first); f == formatMessage || f == formatEvent {
		list, err := listOfLines(first, in)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(readList(src, f, list))
		return
	}
	for text := first; ; {
		src.row++
		if f, err := row(src, text); err != nil {
			err = fmt.Errorf("line %d: %w", src.row, err)
			if !yield(nil, err) {
				return
			}
		} else if !yield(f, nil) {
			return
		}
		var err error
		if text, err = line(in); err != nil {
			yield(nil, fmt.Errorf("line %d: %w", src.row+1, err))
			return
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return
		}
	}
}

func listOfLines(first []byte, in *bufio.Reader) ([]json.RawMessage, error) {
	list := []json.RawMessage{first}
	for size := len(first); ; {
		text, err := line(in)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, err)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return list, nil
		}
		if !json.Valid(text) {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, explain(json.Unmarshal(text, new(json.RawMessage))))
		}
		if size += len(text); size > maxDocument {
			return nil, errTooLarge
		}
		list = append(list, text)
	}
}
