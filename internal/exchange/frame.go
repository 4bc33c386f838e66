package exchange

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirstream/weir/internal/element"
	"github.com/weirstream/weir/internal/job"
)

// A frame is one message of a stream:
//
//	kind (1 byte), channel (uint32, little endian), payload
//
// Channels are numbered by the hello frame, which is the first of a stream. Frames of the kinds of package element flow from the sender;
// credit and closed frames flow back.
const (
	frameHello  = 0x40
	frameCredit = 0x41
	frameClosed = 0x42 // back to the sender: the receiving task of the channel has ended

	frameHeader = 5
	// MaxFrame bounds a frame; a batch of records that does not fit is an error that says so.
	MaxFrame = 32 << 20
	// maxChannels bounds the channels of one stream.
	maxChannels = 1 << 16
	// maxCredits bounds the credits of a channel.
	maxCredits = 4096
)

// hello says which channels a stream carries.
type hello struct {
	job      job.ID
	sender   job.AttemptID
	channels []helloChannel
}

type helloChannel struct {
	edge     string
	receiver job.AttemptID
}

var errTruncated = errors.New("truncated or damaged frame")

func appendHeader(dst []byte, kind byte, channel int) []byte {
	dst = append(dst, kind)
	return binary.LittleEndian.AppendUint32(dst, uint32(channel))
}

func parseHeader(src []byte) (kind byte, channel int, payload []byte, err error) {
	if len(src) < frameHeader {
		return 0, 0, nil, errTruncated
	}
	n := binary.LittleEndian.Uint32(src[1:])
	if n >= maxChannels {
		return 0, 0, nil, fmt.Errorf("channel %d in a frame, a stream has at most %d", n, maxChannels)
	}
	return src[0], int(n), src[frameHeader:], nil
}

// appendElement encodes an element as a frame.
func appendElement(dst []byte, channel int, e element.Element, c Codec) ([]byte, error) {
	dst = appendHeader(dst, byte(e.Kind), channel)
	switch e.Kind {
	case element.Records:
		return c.Encode(dst, e.Batch)
	case element.Barrier:
		dst = binary.AppendVarint(dst, e.Checkpoint.ID)
		dst = binary.AppendVarint(dst, e.Checkpoint.Timestamp)
		dst = appendString(dst, e.Checkpoint.Dir)
		final := byte(0)
		if e.Checkpoint.Final {
			final = 1
		}
		dst = append(dst, final, byte(e.Checkpoint.Stop))
		return append(binary.AppendVarint(dst, e.Checkpoint.Base), byte(e.Checkpoint.Format)), nil
	case element.Cancel:
		return binary.AppendVarint(dst, e.Checkpoint.ID), nil
	case element.EndOfData, element.Closed:
		return dst, nil
	}
	return dst, fmt.Errorf("element kind %d cannot be sent", e.Kind)
}

// parseElement decodes the payload of a frame.
func parseElement(kind byte, payload []byte, c Codec) (element.Element, error) {
	e := element.Element{Kind: element.Kind(kind)}
	r := reader{src: payload}
	switch e.Kind {
	case element.Records:
		b, err := c.Decode(payload)
		e.Batch = b
		return e, err
	case element.Barrier:
		e.Checkpoint = element.Checkpoint{
			ID: r.varint(), Timestamp: r.varint(), Dir: r.string(), Final: r.bool(), Stop: r.stop(), Base: r.varint(), Format: r.format(),
		}
	case element.Cancel:
		e.Checkpoint.ID = r.varint()
	case element.EndOfData, element.Closed:
	default:
		return e, fmt.Errorf("unknown frame kind %#x", kind)
	}
	return e, r.end()
}

func appendHello(dst []byte, h hello) []byte {
	dst = appendHeader(dst, frameHello, 0)
	dst = appendString(dst, string(h.job))
	dst = appendAttempt(dst, h.sender)
	dst = binary.AppendUvarint(dst, uint64(len(h.channels)))
	for _, c := range h.channels {
		dst = appendString(dst, c.edge)
		dst = appendAttempt(dst, c.receiver)
	}
	return dst
}

func parseHello(payload []byte) (hello, error) {
	r := reader{src: payload}
	h := hello{job: job.ID(r.string())}
	h.sender = r.attempt(h.job)
	n := r.uvarint()
	if n > maxChannels {
		return h, fmt.Errorf("hello of %d channels, at most %d are allowed", n, maxChannels)
	}
	for range n {
		if r.err != nil {
			break
		}
		h.channels = append(h.channels, helloChannel{edge: r.string(), receiver: r.attempt(h.job)})
	}
	return h, r.end()
}

func appendCredit(dst []byte, channel, n int) []byte {
	return binary.AppendUvarint(appendHeader(dst, frameCredit, channel), uint64(n))
}

func parseCredit(payload []byte) (int, error) {
	r := reader{src: payload}
	n := r.uvarint()
	if n > maxCredits {
		return 0, fmt.Errorf("%d credits in a frame, a channel has at most %d", n, maxCredits)
	}
	return int(n), r.end()
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendAttempt(dst []byte, a job.AttemptID) []byte {
	dst = appendString(dst, string(a.Task.Vertex))
	dst = binary.AppendUvarint(dst, uint64(a.Task.Subtask))
	return binary.AppendUvarint(dst, uint64(a.Attempt))
}

// reader reads fields; after the first error everything is zero.
type reader struct {
	src []byte
	err error
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.src)
	if !r.advance(n) {
		return 0
	}
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.src)
	if !r.advance(n) {
		return 0
	}
	return v
}

func (r *reader) bool() bool {
	if len(r.src) == 0 || r.src[0] > 1 {
		r.advance(0)
		return false
	}
	set := r.src[0] == 1
	return r.advance(1) && set
}

func (r *reader) stop() job.StopMode {
	if len(r.src) == 0 || job.StopMode(r.src[0]) > job.StopDrain {
		r.advance(0)
		return job.StopNone
	}
	mode := job.StopMode(r.src[0])
	r.advance(1)
	return mode
}

func (r *reader) format() job.SavepointFormat {
	if len(r.src) == 0 || job.SavepointFormat(r.src[0]) > job.FormatNative {
		r.advance(0)
		return job.FormatNone
	}
	format := job.SavepointFormat(r.src[0])
	r.advance(1)
	return format
}

func (r *reader) string() string {
	n := r.uvarint()
	if r.err != nil || n > uint64(len(r.src)) {
		r.err = errTruncated
		return ""
	}
	s := string(r.src[:n])
	r.src = r.src[n:]
	return s
}

func (r *reader) attempt(id job.ID) job.AttemptID {
	return job.AttemptID{
		Job:     id,
		Task:    job.TaskID{Vertex: job.VertexID(r.string()), Subtask: int(r.uvarint())},
		Attempt: int(r.uvarint()),
	}
}

func (r *reader) advance(n int) bool {
	if n <= 0 || r.err != nil {
		r.err = errors.Join(r.err, errTruncated)
		return false
	}
	r.src = r.src[n:]
	return true
}

// end returns the first error, or one about bytes that nobody asked for.
func (r *reader) end() error {
	if r.err != nil {
		return errTruncated
	}
	if len(r.src) > 0 {
		return fmt.Errorf("%d bytes left over in a frame", len(r.src))
	}
	return nil
}
