package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

var rewrite = flag.Bool("rewrite", false, "write golden files that do not exist")

func encode(t *testing.T, md *Metadata) []byte {
	t.Helper()
	data, err := EncodeMetadata(md)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// frame puts a header around a body.
func frame(version uint32, body []byte) []byte {
	out := append([]byte(metadataMagic), make([]byte, headerBytes-4)...)
	binary.BigEndian.PutUint32(out[4:], version)
	binary.BigEndian.PutUint32(out[8:], uint32(len(body)))
	binary.BigEndian.PutUint32(out[12:], Checksum(body))
	return append(out, body...)
}

// A golden file is never changed: it stands for the files that a released version has written.
func TestMetadata_GoldenFileOfVersion1_StaysReadable(t *testing.T) {
	golden(t, "metadata-v1.golden", sample())
}

func golden(t *testing.T, file string, want *Metadata) {
	t.Helper()
	name := filepath.Join("testdata", file)
	if _, err := os.Stat(name); *rewrite && errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(name, encode(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	md, err := DecodeMetadata(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, md); diff != "" {
		t.Errorf("golden file decodes to something else (-want +got):\n%s", diff)
	}
	if !bytes.Equal(encode(t, want), data) {
		t.Error("this build writes other bytes for the same metadata")
	}
}

// Version 2 is written for what version 1 does not have, and for nothing else.
func TestMetadata_GoldenFileOfVersion2_StaysReadable(t *testing.T) {
	golden(t, "metadata-v2.golden", compressedSample())
	if v := binary.BigEndian.Uint32(encode(t, sample())[4:]); v != 1 {
		t.Errorf("metadata without compressed state is of version %d", v)
	}
}

func TestMetadata_EncodingIsDeterministic(t *testing.T) {
	first := encode(t, sample())
	for range 50 {
		if !bytes.Equal(encode(t, sample()), first) {
			t.Fatal("two encodings of equal metadata differ")
		}
	}
}

func TestDecodeMetadata_SaysWhatIsWrong(t *testing.T) {
	good := encode(t, sample())
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	cases := []struct {
		name string
		data []byte
		is   error
		text string
	}{
		{"empty", nil, ErrTruncated, "0 bytes, the header alone has 16"},
		{"another file", []byte("PK\x03\x04 and more of it"), ErrNotMetadata, `it starts with "PK\x03\x04"`},
		{"half a header", good[:9], ErrTruncated, "9 bytes"},
		{"version of the future", frame(9, nil), ErrVersion, "unknown metadata version 9: this build reads versions up to 2"},
		{"version 0", frame(0, nil), ErrVersion, "version 0"},
		{"torn", good[:40], ErrTruncated, "truncated: 40 of "},
		{"with a tail", append(bytes.Clone(good), 1, 2), ErrMalformed, "2 bytes follow its end"},
		{"damaged", flipped, ErrChecksum, "metadata checksum mismatch: it is "},
		{"empty body", frame(1, nil), ErrMalformed, "no job id"},
		{"broken field", frame(1, []byte{0x0a, 0x7f, 'x'}), ErrMalformed, "field 1"},
		{"wrong wire type", frame(1, protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 5)), ErrMalformed, "field 1 has wire type 0 instead of 2"},
		{"too many bits", frame(1, protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 1<<40)), ErrMalformed, "more than 32 bits"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeMetadata(c.data)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error is %q, want %v with %q", err, c.is, c.text)
			}
		})
	}
}

func TestDecodeMetadata_EveryTruncationAndEveryFlippedByteIsNoticed(t *testing.T) {
	good := encode(t, sample())
	for i := range good {
		if _, err := DecodeMetadata(good[:i]); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", i, len(good))
		}
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		if _, err := DecodeMetadata(bad); err == nil {
			t.Fatalf("a flipped bit in byte %d was accepted", i)
		}
	}
}

func TestDecodeMetadata_SkipsUnknownFields(t *testing.T) {
	body := bytes.Clone(encode(t, sample())[headerBytes:])
	body = protowire.AppendVarint(protowire.AppendTag(body, 500, protowire.VarintType), 1)
	body = appendMessage(body, 501, []byte("later"))
	body = protowire.AppendFixed64(protowire.AppendTag(body, 502, protowire.Fixed64Type), 1)
	body = protowire.AppendTag(protowire.AppendTag(body, 503, protowire.StartGroupType), 503, protowire.EndGroupType)
	md, err := DecodeMetadata(frame(1, body))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), md); diff != "" {
		t.Error(diff)
	}
}

func TestMetadata_Validate_RefusesWhatARestoreCouldNotUse(t *testing.T) {
	cases := []struct {
		name   string
		damage func(*Metadata)
		text   string
		// The end of a range is not stored: it follows from the number of offsets.
		unstored bool
	}{
		{"no job", func(md *Metadata) { md.Job = "" }, "no job id", false},
		{"id 0", func(md *Metadata) { md.ID = 0 }, "checkpoint id is 0", false},
		{"kind", func(md *Metadata) { md.Kind = 5 }, "unknown kind 5", false},
		{"text", func(md *Metadata) { md.Params["x"] = "\xff" }, "not UTF-8", false},
		{"long text", func(md *Metadata) { md.JobName = strings.Repeat("x", MaxStringBytes+1) }, "1048577 bytes, at most 1048576", false},
		{"vertex twice", func(md *Metadata) { md.Vertices[1].Vertex = "flights" }, "vertex flights occurs twice", false},
		{"operator twice", func(md *Metadata) { md.Vertices[1].Operators[0].ID = "parse" }, "operator parse is in vertex flights and in vertex per-origin", false},
		{"no parallelism", func(md *Metadata) { md.Vertices[0].Parallelism = 0 }, "vertex flights: parallelism is 0", false},
		{"more than max", func(md *Metadata) { md.Vertices[0].Parallelism = 9 }, "parallelism is 9, it is at least 1 and at most 8", false},
		{"max too large", func(md *Metadata) { md.Vertices[0].MaxParallelism = 40000 }, "max parallelism is 40000", false},
		{"order of subtasks", func(md *Metadata) { md.Vertices[1].Subtasks[0].Subtask = 1 }, "subtask 1 after subtask 1", false},
		{"subtask too high", func(md *Metadata) { md.Vertices[1].Subtasks[1].Subtask = 2 }, "subtask 2 after subtask 0 at parallelism 2", false},
		{"foreign state", func(md *Metadata) { md.Vertices[0].Subtasks[0].Operators[0].Operator = "x" }, `state of operator "x", which the vertex does not have`, false},
		{"group outside", func(md *Metadata) { keyedOf(md).Range.End = 9 }, "key groups [0,9) are not in [0,8)", true},
		{"offset missing", func(md *Metadata) { keyedOf(md).Offsets = []int64{0, 1} }, "key groups [0,4) need 5 offsets, there are 2", true},
		{"offsets fall", func(md *Metadata) { keyedOf(md).Offsets[2] = 1 }, "offset 2 is 1, it must be at least 3", false},
		{"offset outside", func(md *Metadata) { keyedOf(md).Offsets[4] = 11 }, "offset 4 is 11, it must be at least 10 and at most 10", false},
		{"absolute", func(md *Metadata) { keyedOf(md).Handle.Path = "/etc/passwd" }, `"/etc/passwd" is not a relative path`, false},
		{"upwards", func(md *Metadata) { keyedOf(md).Handle.Path = "a/../../b" }, "not a relative path", false},
		{"backslash", func(md *Metadata) { keyedOf(md).Handle.Path = `a\b` }, "not a relative path", false},
		{"the directory itself", func(md *Metadata) { keyedOf(md).Handle.Path = "." }, "not a relative path", false},
		{"zero byte", func(md *Metadata) { keyedOf(md).Handle.Path = "a\x00b" }, "not a relative path", false},
		{"long path", func(md *Metadata) { keyedOf(md).Handle.Path = strings.Repeat("x", MaxPathBytes+1) }, "4097 bytes, at most 4096", false},
		{"both", func(md *Metadata) { keyedOf(md).Handle.Inline = []byte("x") }, "both a path and 1 inline bytes", false},
		{"neither", func(md *Metadata) { keyedOf(md).Handle.Path = "" }, "handle without a path has 0 inline bytes", false},
		{"checksum missing", func(md *Metadata) { keyedOf(md).GroupCRC = []uint32{1} }, "key groups [0,4) need 4 checksums, there are 1", false},
		{"compression of the future", func(md *Metadata) { keyedOf(md).Handle.Compression = 7 }, "state of unknown compression 7", false},
		{"raw length of nothing", func(md *Metadata) { keyedOf(md).Handle.RawLength = 7 }, "state of compression none has the raw length 7", false},
		{"overflow", func(md *Metadata) { keyedOf(md).Handle.Offset = 1<<63 - 1 }, "handle of per-origin-0-a1-c7.state has offset", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			md := sample()
			c.damage(md)
			_, err := EncodeMetadata(md)
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("encoding: error is %q, want %q", err, c.text)
			}
			if c.unstored {
				return
			}
			if _, err := DecodeMetadata(frame(1, appendMetadata(nil, md))); !errors.Is(err, ErrMalformed) {
				t.Errorf("decoding: error is %v, want %v", err, ErrMalformed)
			}
		})
	}
}

func keyedOf(md *Metadata) *Keyed { return md.Vertices[1].Subtasks[0].Operators[0].Keyed }

func TestHandle_Verify(t *testing.T) {
	data := []byte("some state")
	for _, h := range []Handle{InlineHandle(data), FileHandle("f", 8, data)} {
		if err := h.Verify(data); err != nil {
			t.Errorf("%s: %v", h, err)
		}
		if err := h.Verify(data[1:]); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "9 of 10 bytes") {
			t.Errorf("%s: truncated: %v", h, err)
		}
		if err := h.Verify([]byte("some State")); !errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), h.String()) {
			t.Errorf("%s: damaged: %v", h, err)
		}
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	md := sample()
	f.Add(appendMetadata(nil, md))
	md.Vertices = md.Vertices[:1]
	f.Add(appendMetadata(nil, md))
	f.Add(appendMetadata(nil, nativeSample()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum would hide the decoder from the fuzzer, so the bytes are a body; the header is in the way only of the bytes as they are.
		_, _ = DecodeMetadata(body)
		md, err := DecodeMetadata(frame(1, body))
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		// What was accepted can be written again, and is then a fixed point.
		first := encode(t, md)
		again, err := DecodeMetadata(first)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, again), first) {
			t.Fatal("decoding and encoding changes the metadata")
		}
	})
}
