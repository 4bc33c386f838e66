package file_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
)

type everything struct {
	Text  string `csv:"the text"`
	I     int
	I8    int8
	I16   int16
	I32   int32
	I64   int64
	U     uint
	U8    uint8
	U16   uint16
	U32   uint32
	U64   uint64
	F32   float32
	F64   float64
	B     bool
	At    time.Time
	For   time.Duration
	Kind  kind
	_     int
	Other []int `csv:"-"`
}

type kind string

const everyHeader = "the text,i,i8,i16,i32,i64,u,u8,u16,u32,u64,f32,f64,b,at,for,KIND\n"

func TestCSV_ReadsEveryType(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte(everyHeader+
		`x,-1,-128,-32768,-2147483648,-9223372036854775808,1,255,65535,4294967295,18446744073709551615,1.5,-2e300,true,2001-01-01T00:01:00+02:00,1m30s,k`+"\n"))
	got := mustReadAll(t, file.CSV[everything](path), 1)
	want := everything{
		Text: "x", I: -1, I8: -128, I16: -32768, I32: -2147483648, I64: -9223372036854775808, U: 1, U8: 255, U16: 65535, U32: 4294967295,
		U64: 18446744073709551615, F32: 1.5, F64: -2e300, B: true, At: time.Date(2000, 12, 31, 22, 1, 0, 0, time.UTC), For: 90 * time.Second, Kind: "k",
	}
	if len(got) != 1 || fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", want) || got[0].At != want.At {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
}

type pair struct {
	Name string `csv:"name"`
	N    int64  `csv:"n"`
}

func TestCSV_MalformedRows_NameTheirPlace(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{"a,x", `3:3: n: "x" is not a whole number`},
		{"a,", `3:3: n: "" is not a whole number`},
		{"a,-", `3:3: n: "-" is not a whole number`},
		{"a,1.5", `3:3: n: "1.5" is not a whole number`},
		{"abc, 1", `3:5: n: " 1" is not a whole number`},
		{"a,9223372036854775808", `3:3: n: "9223372036854775808" is out of the range of the field`},
		{"a", `3:2: 1 fields, the header has 2`},
		{"a,1,2", `3:5: more fields than the header, which has 2`},
		{`"a",1,`, `3:7: more fields than the header, which has 2`},
		{`"a"`, `3:4: 1 fields, the header has 2`},
		{`"a"b,1`, `3:4: text behind the closing quote`},
		{`a"b,1`, `3:2: a quote inside a field`},
		{`"a,1`, `3:1: a quoted field has no closing quote on its line; if fields hold line breaks, read the file with file.MultiLine()`},
		{`"a""",z`, `3:7: n: "z" is not a whole number`},
		{"a," + strings.Repeat("y", 100), `3:3: n: "` + strings.Repeat("y", 40) + `"... is not a whole number`},
	} {
		for _, compressed := range []bool{false, true} {
			text, name := []byte("name,n\nfine,1\n"+c.row+"\n"), "a.csv"
			if compressed {
				text, name = zip(t, text), "a.csv.gz"
			}
			path := put(t, t.TempDir(), name, text)
			got, err := readAll(t, file.CSV[pair](path, file.SplitSize(4)), 1)
			if err == nil || !strings.HasPrefix(err.Error(), path+":"+c.want) {
				t.Errorf("row %s: error %v\nwant %s:%s", c.row, err, path, c.want)
				continue
			}
			if !stream.IsPermanent(err) {
				t.Errorf("row %s: %v would be tried again", c.row, err)
			}
			equal(t, c.row, got, []pair{{"fine", 1}})
		}
	}
}

func TestCSV_MalformedValues_OfEveryType(t *testing.T) {
	good := strings.Split("x,1,1,1,1,1,1,1,1,1,1,1,1,true,2001-01-01T00:01:00Z,1s,k", ",")
	for column, bad := range map[int][]string{
		1: {"x", ""}, 2: {"128", "-129"}, 3: {"32768"}, 4: {"2147483648"}, 5: {"-9223372036854775809"}, 6: {"-1"}, 7: {"256"}, 8: {"65536"},
		9: {"4294967296"}, 10: {"18446744073709551616", "-1", ""}, 11: {"1e39", "z"}, 12: {"1e309", ""}, 13: {"maybe"}, 14: {"2001-01-01", "2001-02-30T00:00:00Z"}, 15: {"1", "x"},
	} {
		for _, b := range bad {
			row := append([]string(nil), good...)
			row[column] = b
			path := put(t, t.TempDir(), "a.csv", []byte(everyHeader+strings.Join(row, ",")+"\n"))
			_, err := readAll(t, file.CSV[everything](path), 1)
			if at := len(strings.Join(row[:column], ",")) + 2; err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s:2:%d: ", path, at)) {
				t.Errorf("column %d, %q: error %v", column, b, err)
			}
		}
	}
}

func TestCSV_HeadersAndTypes_ThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	splits := func(src interface {
		Splits(context.Context, int) ([][]byte, error)
	}) error {
		_, err := src.Splits(t.Context(), 1)
		return err
	}
	type untagged struct{ Name string }
	type twice struct {
		A string `csv:"x"`
		B string `csv:"x"`
	}
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"missing column":        {splits(file.CSV[pair](put(t, dir, "1", []byte("name,m\n")))), `/1: no column "n" for the field file_test.pair.N; the header has: name, m`},
		"tag in another case":   {splits(file.CSV[pair](put(t, dir, "2", []byte("Name,n\n")))), `no column "name"`},
		"empty file":            {splits(file.CSV[pair](put(t, dir, "3", nil))), "/3 has no header line"},
		"only a mark":           {splits(file.CSV[pair](put(t, dir, "4", []byte("\ufeff")))), "/4 has no header line"},
		"column twice":          {splits(file.CSV[untagged](put(t, dir, "5", []byte("NAME,name\n")))), `two columns "NAME" and "name"`},
		"header too long":       {splits(file.CSV[pair](put(t, dir, "6", []byte("name,n\n")), file.MaxLine(3))), "the header is longer than 3 bytes"},
		"header with bad quote": {splits(file.CSV[pair](put(t, dir, "7", []byte("name,\"n\n")))), "/7:1:6: header: a quoted field has no closing quote"},
		"not a struct":          {splits(file.CSV[int](dir)), "must be a struct"},
		"field type":            {splits(file.CSV[struct{ X []int }](dir)), "which a CSV cell cannot hold"},
		"two fields":            {splits(file.CSV[twice](dir)), `are both for the column "x"`},
		"no fields":             {splits(file.CSV[struct{ _ int }](dir)), "has no exported field"},
		"gzip without header":   {splits(file.CSV[pair](put(t, dir, "8.gz", zip(t, nil)))), "has no header line"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", what, c.err, c.want)
		}
	}
}

func TestCSV_WithHeaderOnly_HasNoRows(t *testing.T) {
	for i, text := range []string{"name,n", "name,n\n", "\ufeffn,\"name\"\r\n\r\n\n"} {
		path := put(t, t.TempDir(), "a", []byte(text))
		equal(t, fmt.Sprint(i), mustReadAll(t, file.CSV[pair](path, file.SplitSize(1)), 1), nil)
	}
}

// randomRows makes a CSV file with the columns of pair among others, by the standard library.
func randomRows(rnd *rand.Rand, multiLine bool) (text []byte, rows []pair) {
	var b bytes.Buffer
	if rnd.IntN(3) == 0 {
		b.WriteString("\ufeff")
	}
	w := csv.NewWriter(&b)
	w.UseCRLF = !multiLine && rnd.IntN(2) == 0 // it would change line breaks inside fields too
	columns := rnd.Perm(4)                     // of name, n, and two that nobody wants
	write := func(cells ...string) {
		row := make([]string, 4)
		for i, c := range columns {
			row[c] = cells[i]
		}
		if err := w.Write(row); err != nil {
			panic(err)
		}
	}
	write("name", "n", "Name", "more, \"quoted\"")
	for range rnd.IntN(40) {
		p := pair{Name: randomCell(rnd, multiLine), N: rnd.Int64() >> rnd.IntN(64)}
		if rnd.IntN(2) == 0 {
			p.N = -p.N
		}
		write(p.Name, strconv.FormatInt(p.N, 10), randomCell(rnd, multiLine), "")
		rows = append(rows, p)
		if rnd.IntN(10) == 0 {
			w.Flush()
			b.WriteString("\n")
		}
	}
	w.Flush()
	text = b.Bytes()
	if rnd.IntN(3) == 0 {
		text = bytes.TrimRight(text, "\r\n")
	}
	return text, rows
}

func randomCell(rnd *rand.Rand, multiLine bool) string {
	pieces := []string{"a", "Köln", ",", `"`, `""`, " ", "€", "0", strings.Repeat("z", 40), "LAX"}
	if multiLine {
		pieces = append(pieces, "\n", "\n\n", "\n\"")
	}
	var s string
	for range rnd.IntN(4) {
		s += pieces[rnd.IntN(len(pieces))]
	}
	return s
}

func TestCSV_OfRandomRows_AreReadAsWritten(t *testing.T) {
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		multiLine := seed%3 == 0
		text, want := randomRows(rnd, multiLine)
		name, opts := "a.csv", []file.Option{file.SplitSize(int64(1 + rnd.IntN(200)))}
		if multiLine {
			opts = append(opts, file.MultiLine())
		}
		if rnd.IntN(3) == 0 {
			text, name = zip(t, text), "a.csv.gz"
		}
		path := put(t, t.TempDir(), name, text)
		equal(t, fmt.Sprintf("seed %d", seed), mustReadAll(t, file.CSV[pair](path, opts...), 1), want)
		connectortest.Source(t, seed, file.CSV[pair](path, opts...), want)
	}
}

func TestMultiLine_AfterAStrayQuote_GoesOnWithTheNextLine(t *testing.T) {
	for _, filler := range []int{0, 300_000} {
		text := "name,n\na,1\n\"b,2\nc,3\n\"d\ne\",4\n" + strings.Repeat("f,5\n", filler)
		path := put(t, t.TempDir(), "a.csv", []byte(text))
		src := file.CSV[pair](path, file.MultiLine(), file.OnMalformed(file.Skip))
		got := mustReadAll(t, src, 1)
		// The field that "b,2 opens ends with the quote before d, and the one that the quote behind e opens does not end.
		want := append([]pair{{"a", 1}}, slices.Repeat([]pair{{"f", 5}}, filler)...)
		equal(t, fmt.Sprint(filler), got, want)
	}
	path := put(t, t.TempDir(), "a.csv", []byte("name,n\na,1\nb,2\n\"c,3\nd,4\ne,5"))
	got := mustReadAll(t, file.CSV[pair](path, file.MultiLine(), file.OnMalformed(file.Skip)), 1)
	equal(t, "open quote up to the end", got, []pair{{"a", 1}, {"b", 2}, {"d", 4}, {"e", 5}})
}

func TestMultiLine_MalformedValue_NamesItsLine(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte("name,n\n\"a\nb\",1\n\"c\n\nd\",x\n"))
	_, err := readAll(t, file.CSV[pair](path, file.MultiLine()), 1)
	if err == nil || !strings.HasPrefix(err.Error(), path+`:6:4: n: "x"`) {
		t.Errorf("error %v", err)
	}
}

// FuzzCSV compares the reader with that of the standard library, which is as strict, on rows of two strings.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n", "\"a\",\"b\"\"\"\n", "a\"b,c\n\n\r\n", "\"a\nb\",c", ",\n\"\",\"\"\n", "a\n", "a,b,c\n", "\"a\"x,b\n"} {
		f.Add(s)
	}
	type row struct{ A, B string }
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ReplaceAll(text, "\r\n", "\n"), "\r") {
			t.Skip("the standard library treats a lone CR inside quotes in its own way")
		}
		path := put(t, t.TempDir(), "a.csv", []byte("a,b\n"+text))
		got, err := readAll(t, file.CSV[row](path, file.MultiLine()), 1)
		std := csv.NewReader(strings.NewReader("a,b\n" + strings.ReplaceAll(text, "\r\n", "\n")))
		want, stdErr := std.ReadAll()
		if (err == nil) != (stdErr == nil) {
			t.Fatalf("%q: error %v, the standard library has %v", text, err, stdErr)
		}
		if err != nil {
			return
		}
		var rows []row
		for _, w := range want[1:] {
			rows = append(rows, row{strings.ReplaceAll(w[0], "\r\n", "\n"), strings.ReplaceAll(w[1], "\r\n", "\n")})
		}
		for i := range got {
			got[i].A, got[i].B = strings.ReplaceAll(got[i].A, "\r\n", "\n"), strings.ReplaceAll(got[i].B, "\r\n", "\n")
		}
		equal(t, text, got, rows)
	})
}
