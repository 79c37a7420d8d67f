package link

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
)

// MaxData is the maximum number of bytes of data in a record.
const MaxData = 64 << 10

// KeySize is the size of the key of a link, in bytes.
const KeySize = 32

const (
	magic      = "minilink"
	randomSize = 32
	greetSize  = len(magic) + 1 + randomSize + KeySize
	answerSize = len(magic) + randomSize
	headSize   = 4 + 1 + 8 + 8
	macSize    = 16
)

// greeting kinds
const (
	greetNew    = 1
	greetResume = 2
)

// record kinds
const (
	kindData  = 'd' // may be empty: an acknowledgement, or a sign of life
	kindClose = 'c' // the sender's stream has ended
)

// ErrForged means that a connection delivered what the other end did not send.
var ErrForged = errors.New("forged or damaged record")

// record is a received record. Its data is valid until release is called.
type record struct {
	kind          byte
	offset, acked uint64
	data          []byte
	release       func()
}

// buffers holds the buffers of records of the maximum size.
var buffers = sync.Pool{New: func() any { return new([headSize + MaxData + macSize]byte) }}

// sealer makes and checks the codes of the records of one direction of a connection.
type sealer struct {
	mac   hash.Hash
	count uint64
	sum   [sha256.Size]byte
}

func newSealer(key []byte, direction byte, clientRandom, serverRandom []byte) *sealer {
	derive := hmac.New(sha256.New, key)
	derive.Write([]byte{direction})
	derive.Write(clientRandom)
	derive.Write(serverRandom)
	return &sealer{mac: hmac.New(sha256.New, derive.Sum(nil))}
}

// next returns the code of the next record.
func (s *sealer) next(record []byte) []byte {
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], s.count)
	s.count++
	s.mac.Reset()
	s.mac.Write(number[:])
	s.mac.Write(record)
	return s.mac.Sum(s.sum[:0])[:macSize]
}

// seal completes the record in b, whose data starts at headSize.
func (s *sealer) seal(b []byte, kind byte, offset, acked uint64) []byte {
	binary.BigEndian.PutUint32(b, uint32(len(b)-headSize))
	b[4] = kind
	binary.BigEndian.PutUint64(b[5:], offset)
	binary.BigEndian.PutUint64(b[13:], acked)
	return append(b, s.next(b)...)
}

// read reads and checks a record. The error wraps ErrForged if the record is not one
// that the other end has sent. It takes a buffer only when a record arrives, because most
// links are idle.
func (s *sealer) read(r io.Reader) (record, error) {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return record{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > MaxData {
		return record{}, fmt.Errorf("%w: %d bytes of data", ErrForged, n)
	}
	buffer := buffers.Get().(*[headSize + MaxData + macSize]byte) //nolint:errcheck // all values have this type
	release := func() { buffers.Put(buffer) }
	end := headSize + int(n)
	b := buffer[:end+macSize]
	copy(b, head[:])
	if _, err := io.ReadFull(r, b[headSize:]); err != nil {
		release()
		return record{}, err
	}
	if !hmac.Equal(b[end:], s.next(b[:end])) {
		release()
		return record{}, ErrForged
	}
	return record{
		kind: b[4], offset: binary.BigEndian.Uint64(b[5:]), acked: binary.BigEndian.Uint64(b[13:]),
		data: b[headSize:end], release: release,
	}, nil
}

// NewKey returns a random key for a link.
func NewKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key)
	return key
}

// greet performs the client's part of the greeting.
func greet(conn io.ReadWriter, key []byte, kind byte) (send, receive *sealer, err error) {
	b := make([]byte, 0, greetSize)
	b = append(b, magic...)
	b = append(b, kind)
	b = append(b, NewKey()...) // randomSize bytes
	if kind == greetNew {
		b = append(b, key...)
	} else {
		b = append(b, make([]byte, KeySize)...)
	}
	random := b[len(magic)+1:][:randomSize]
	if _, err := conn.Write(b); err != nil {
		return nil, nil, err
	}
	var answer [answerSize]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, nil, err
	}
	if string(answer[:len(magic)]) != magic {
		return nil, nil, fmt.Errorf("%w: %.64q", errGreeting, answer[:])
	}
	serverRandom := answer[len(magic):]
	return newSealer(key, 'c', random, serverRandom), newSealer(key, 's', random, serverRandom), nil
}

// errGreeting means that a connection did not start with a valid greeting.
var errGreeting = errors.New("invalid greeting")

// receiveGreeting performs the server's part of the greeting. known is the key of the
// link, or nil if it is not known yet. It returns the key in use.
func receiveGreeting(conn io.ReadWriter, known []byte) (key []byte, send, receive *sealer, err error) {
	var b [greetSize]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return nil, nil, nil, err
	}
	kind, sent := b[len(magic)], b[greetSize-KeySize:]
	switch {
	case string(b[:len(magic)]) != magic, kind != greetNew && kind != greetResume:
		return nil, nil, nil, errGreeting
	case kind == greetNew && known != nil && !hmac.Equal(sent, known): // the client may not know yet that the key was taken
		return nil, nil, nil, errGreeting
	case kind == greetResume && known == nil:
		return nil, nil, nil, errGreeting
	}
	if key = known; key == nil {
		key = append(key, sent...)
	}
	random := b[len(magic)+1:][:randomSize]
	answer := append([]byte(magic), NewKey()...) // randomSize bytes
	if _, err := conn.Write(answer); err != nil {
		return nil, nil, nil, err
	}
	serverRandom := answer[len(magic):]
	return key, newSealer(key, 's', random, serverRandom), newSealer(key, 'c', random, serverRandom), nil
}
