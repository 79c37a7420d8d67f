package formats

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

	"github.com/minibench/mini/internal/rootdir"
	"github.com/minibench/mini/trajectories"
)

// maxDocument bounds the data that is read into memory, in bytes: a whole file, or one
// line of JSON lines. Decoding needs up to five times as much memory.
const maxDocument = 512 << 20

// source is the file of a trajectory, and the position in it.
type source struct {
	path   string
	sha256 string
	row    int // File.Row
}

// base returns the file name.
func (s source) base() string { return filepath.Base(s.path) }

// maxName bounds an instance ID made from a file name, in bytes.
const maxName = 180

// instanceID makes an instance ID from the row and the file name: without extensions, and
// with _ for characters that are not valid in an instance ID.
func (s source) instanceID() string {
	name := s.base()
	for _, extension := range []string{".json", ".jsonl", ".traj", ".trajectory", ".atif"} {
		name = strings.TrimSuffix(name, extension)
	}
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r == '\\' || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	name = strings.ToValidUTF8(name[:min(len(name), maxName)], "")
	name = cmp.Or(strings.TrimSpace(strings.TrimLeft(name, ".- ")), "attempt")
	if s.row > 0 {
		name += fmt.Sprintf("-%d", s.row)
	}
	return name
}

// readAll yields all attempts in a file. It detects whether the file is a journal, one JSON
// document, or JSON lines.
func readAll(path string) iter.Seq2[*File, error] {
	return func(yield func(*File, error) bool) {
		f, src, err := openFile(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = f.Close() }()
		if src.sha256, err = hashFile(f); err != nil {
			yield(nil, err)
			return
		}
		in := bufio.NewReaderSize(f, 64<<10)
		skipBOM(in)
		first, err := nextLine(in)
		switch {
		case err != nil:
			yield(nil, err)
		case isJournal(first):
			yield(openJournal(src))
		case !json.Valid(first) || !hasMore(in): // one document, on one line or several
			rest, err := readLimited(in, maxDocument-len(first))
			if err != nil {
				yield(nil, err)
				return
			}
			readDocument(src, append(first, rest...), yield)
		default:
			readLines(src, first, in, yield)
		}
	}
}

func openFile(path string) (*os.File, source, error) {
	f, err := rootdir.OpenRegular(path, 0)
	return f, source{path: path}, unwrapPath(err)
}

// unwrapPath removes the path from an error, since OpenAll and FindFiles add it.
func unwrapPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// hashFile returns the SHA-256 of a file in hex, and seeks to its start.
func hashFile(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

func skipBOM(in *bufio.Reader) {
	if head, _ := in.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
}

// nextLine returns the next line that is not empty. At the end of the file, it returns
// white space or nothing.
func nextLine(in *bufio.Reader) ([]byte, error) {
	for {
		line, err := trajectories.ReadLine(in, nil, maxDocument)
		switch {
		case errors.Is(err, io.EOF), err == nil && len(bytes.TrimSpace(line)) > 0:
			return line, nil
		case err != nil:
			return nil, unwrapPath(err)
		}
	}
}

var errTooLarge = fmt.Errorf("more than %d MB in one document or line", maxDocument>>20)

// hasMore reports whether more than white space follows.
func hasMore(in *bufio.Reader) bool {
	for {
		c, err := in.ReadByte()
		if err != nil {
			return false
		}
		if !strings.ContainsRune(" \t\r\n", rune(c)) {
			return in.UnreadByte() == nil
		}
	}
}

// readLimited reads the rest of in. It fails if that has more than limit bytes.
func readLimited(in io.Reader, limit int) ([]byte, error) {
	rest, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, unwrapPath(err)
	}
	if len(rest) > limit {
		return nil, errTooLarge
	}
	return rest, nil
}

// readLines reads JSON lines and yields their attempts. Each line is a conversation, or all
// lines are the messages or the events of one conversation.
func readLines(src source, first []byte, in *bufio.Reader, yield func(*File, error) bool) {
	if f := detectFormat(first); f == formatMessage || f == formatEvent {
		list, err := collectLines(first, in)
		if err != nil {
			yield(nil, err)
			return
		}
		yield(readList(src, f, list))
		return
	}
	for line := first; ; {
		src.row++
		if f, err := readRow(src, line); err != nil {
			err = fmt.Errorf("line %d: %w", src.row, err)
			if !yield(nil, err) {
				return
			}
		} else if !yield(f, nil) {
			return
		}
		var err error
		if line, err = nextLine(in); err != nil {
			yield(nil, fmt.Errorf("line %d: %w", src.row+1, err))
			return
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return
		}
	}
}

// collectLines returns all lines. It fails if one is not JSON.
func collectLines(first []byte, in *bufio.Reader) ([]json.RawMessage, error) {
	list := []json.RawMessage{first}
	for size := len(first); ; {
		line, err := nextLine(in)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return list, nil
		}
		if !json.Valid(line) {
			return nil, fmt.Errorf("line %d: %w", len(list)+1, explainJSON(json.Unmarshal(line, new(json.RawMessage))))
		}
		if size += len(line); size > maxDocument {
			return nil, errTooLarge
		}
		list = append(list, line)
	}
}
