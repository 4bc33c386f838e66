package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirstream/weir/connector/connectortest"
	"github.com/weirstream/weir/connector/file"
	"github.com/weirstream/weir/stream"
)

func TestPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"b", "a", "c.csv", ".hidden", "x.csv.inprogress", "y.csv.pending", "sub/d", "odd[name", "with,comma"} {
		put(t, dir, n, []byte(filepath.Base(n)+"\n"))
	}
	must(t, os.Symlink(filepath.Join(dir, "sub", "d"), filepath.Join(dir, "link")))
	t.Chdir(dir)
	for pattern, want := range map[string]string{
		".":                     "a b c.csv d odd[name with,comma",
		dir:                     "a b c.csv d odd[name with,comma",
		"sub":                   "d",
		"?":                     "a b",
		"*":                     "a b c.csv d odd[name with,comma",
		"*.csv,a":               "a c.csv",
		" b , a,b,./b":          "a b",
		"sub/d":                 "d",
		"*/*":                   "d",
		"odd[name":              "odd[name",
		"with,comma":            "with,comma",
		".hidden,x.csv.*,b":     "",
		".hidden":               ".hidden",
		"x.csv.inprogress,?":    "a b x.csv.inprogress",
		"nothing":               "",
		"nothing*":              "",
		"a,nothing":             "",
		"a,,b":                  "",
		"":                      "",
		"/dev/null":             "",
		"a/b":                   "",
		"[":                     "",
		"sub/*.csv,sub/d":       "",
		filepath.Join(dir, "a"): "a",
	} {
		got, err := readAll(t, file.Lines(pattern), 2)
		if want == "" {
			if err == nil {
				t.Errorf("%q: read %v", pattern, got)
			} else if parts := strings.Split(pattern, ","); !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(err.Error(), p) }) {
				t.Errorf("%q: error %v does not name it", pattern, err)
			}
			continue
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: read %v, error %v, want %s", pattern, got, err, want)
		}
	}
	empty := t.TempDir()
	if _, err := readAll(t, file.Lines(empty), 1); err == nil || !strings.Contains(err.Error(), empty+" has no files") {
		t.Errorf("empty directory: error %v", err)
	}
}

func TestGzip_ThatIsDamaged_IsAPermanentError(t *testing.T) {
	whole := zip(t, []byte("name,n\n"+strings.Repeat("a,1\n", 100_000)))
	flipped := slices.Clone(whole)
	flipped[len(flipped)/2] ^= 0x55
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut":            {whole[:len(whole)/2], "ends too early"},
		"flipped":        {flipped, "damaged gzip"},
		"junk behind":    {append(slices.Clone(whole), "junk of some bytes"...), "damaged gzip"},
		"not gzip":       {[]byte("name,n\n"), "is named .gz but is not gzip"},
		"nothing":        {nil, "is named .gz but is not gzip"},
		"cut in header":  {whole[:5], "ends too early"},
		"only the magic": {whole[:2], "ends too early"},
	} {
		path := put(t, t.TempDir(), "a.csv.gz", c.data)
		_, err := readAll(t, file.CSV[pair](path), 1)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !stream.IsPermanent(err) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	path := put(t, t.TempDir(), "magic-without-suffix", whole)
	if got := mustReadAll(t, file.CSV[pair](path), 1); len(got) != 100_000 {
		t.Errorf("%d rows of gzip without the suffix", len(got))
	}
}

func TestOpen_OfAFileThatChanged_IsAPermanentError(t *testing.T) {
	text := []byte("name,n\na,1\nb,2\nc,3\n")
	for what, c := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"appended": {func(p string) error { return os.WriteFile(p, append(slices.Clone(text), "d,4\n"...), 0o644) }, "(19 bytes then, 23 now)"},
		"cut":      {func(p string) error { return os.Truncate(p, 11) }, "(19 bytes then, 11 now)"},
		"replaced": {func(p string) error { return os.WriteFile(p, []byte("name,n\na,1\nb,9\nc,3\n"), 0o644) }, "has changed"},
		"removed":  {os.Remove, "no such file"},
	} {
		path := put(t, t.TempDir(), "a.csv", text)
		src := file.CSV[pair](path)
		splits, err := src.Splits(t.Context(), 1)
		must(t, err)
		r, err := src.Open(stream.SourceEnv{Splits: splits})
		must(t, err)
		var out connectortest.Collected[pair]
		_, err = r.Read(&out, 1)
		must(t, err)
		positions, err := r.Positions()
		must(t, err)
		must(t, r.Close())
		must(t, c.change(path))
		r, err = src.Open(stream.SourceEnv{Splits: positions, Restored: true})
		must(t, err)
		if _, err = r.Read(&out, 10); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || !stream.IsPermanent(err) {
			t.Errorf("%s: error %v", what, err)
		}
		must(t, r.Close())
	}
}

func TestPark_WritesRowsWithTheirPlace_AndCopiesAreEqual(t *testing.T) {
	dir := t.TempDir()
	path := put(t, dir, "in/a.csv", []byte("name,n\na,1\nbad\nb,2\n\nc,x\n\"d\te\",y\nf,6\n"))
	park := filepath.Join(dir, "parked")
	src := file.CSV[pair](path, file.SplitSize(5), file.OnMalformed(file.Park(park)))
	for range 2 { // the second time as after a failure
		equal(t, "rows", mustReadAll(t, src, 1), []pair{{"a", 1}, {"b", 2}, {"f", 6}})
	}
	data, err := os.ReadFile(park)
	must(t, err)
	once := path + ":3:4: 1 fields, the header has 2\tbad\n" +
		path + ":6:3: n: \"x\" is not a whole number\tc,x\n" +
		path + ":7:7: n: \"y\" is not a whole number\t\"d\te\",y\n"
	once = strings.NewReplacer(":4: 1 fields", ":4\t1 fields", ":3: n:", ":3\tn:", ":7: n:", ":7\tn:").Replace(once)
	if string(data) != once+once {
		t.Errorf("parked:\n%swant twice:\n%s", data, once)
	}
	_, err = readAll(t, file.CSV[pair](path, file.OnMalformed(file.Park(filepath.Join(dir, "none", "parked")))), 1)
	if err == nil || !strings.Contains(err.Error(), "park malformed row: open "+dir+"/none/parked") {
		t.Errorf("error %v", err)
	}
}

func TestSkip_CountsWhatItLeavesOut(t *testing.T) {
	path := put(t, t.TempDir(), "a.csv", []byte("name,n\nx\ny\na,1\nz,z"))
	src := file.CSV[pair](path, file.OnMalformed(file.Skip))
	splits, err := src.Splits(t.Context(), 1)
	must(t, err)
	r, err := src.Open(stream.SourceEnv{Splits: splits})
	must(t, err)
	var out connectortest.Collected[pair]
	_, err = r.Read(&out, 2)
	must(t, err)
	if len(out.Records) != 0 {
		t.Error("malformed rows do not count towards the limit of a Read")
	}
	_, err = r.Read(&out, 10)
	must(t, err)
	must(t, r.Close())
	equal(t, "rows", out.Records, []pair{{"a", 1}})
	if n := r.(interface{ Skipped() int64 }).Skipped(); n != 3 {
		t.Errorf("%d rows were skipped, want 3", n)
	}
}

func TestRate_HoldsForEachSubtask(t *testing.T) {
	path := put(t, t.TempDir(), "a", []byte(strings.Repeat("x\n", 2001)))
	synctest.Test(t, func(t *testing.T) {
		src := file.Lines(path, file.Rate(400))
		splits, err := src.Splits(t.Context(), 1)
		must(t, err)
		r, err := src.Open(stream.SourceEnv{Splits: splits})
		must(t, err)
		start := time.Now()
		var out connectortest.Collected[string]
		for {
			next, err := r.Read(&out, 1000)
			must(t, err)
			if next.Ended() {
				break
			}
			if waiting, until := next.Waiting(); waiting {
				time.Sleep(time.Until(until)) // fake time
			}
			if due := int(time.Since(start)*400/time.Second) + 1; len(out.Records) > due {
				t.Fatalf("%d records after %v", len(out.Records), time.Since(start))
			}
		}
		must(t, r.Close())
		if took := time.Since(start); len(out.Records) != 2001 || took < 5*time.Second || took > 5*time.Second+10*time.Millisecond {
			t.Errorf("%d records in %v, want 2001 in 5 s", len(out.Records), took)
		}
	})
}

// discard counts records.
type discard[T any] struct{ n int }

func (d *discard[T]) Collect(stream.Timestamp, T) error { d.n++; return nil }

func benchmarkSource[T any](b *testing.B, src func(path string) stream.Source[T]) {
	const rows = 200_000
	var text strings.Builder
	text.WriteString("time,origin,destination,delay,distance\n")
	airports := []string{"LAS", "ATL", "SFO", "ORD", "JFK", "PHL", "SAV", "DEN"}
	for i := range rows {
		at := time.Unix(978_307_260+int64(i), 0).UTC().Format(time.RFC3339)
		fmt.Fprintf(&text, "%s,%s,%s,%d,%d\n", at, airports[i%7], airports[i%8], i%300-50, 100+i%2500)
	}
	path := put(b, b.TempDir(), "flights.csv", []byte(text.String()))
	b.SetBytes(int64(text.Len()))
	b.ResetTimer()
	for range b.N {
		s := src(path)
		splits, err := s.Splits(b.Context(), 1)
		must(b, err)
		r, err := s.Open(stream.SourceEnv{Splits: splits})
		must(b, err)
		var out discard[T]
		for {
			next, err := r.Read(&out, 1000)
			must(b, err)
			if next.Ended() {
				break
			}
		}
		must(b, r.Close())
		if out.n < rows {
			b.Fatalf("%d rows", out.n)
		}
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkLines(b *testing.B) {
	benchmarkSource(b, func(p string) stream.Source[string] { return file.Lines(p) })
}

func BenchmarkCSV_TextAndNumbers(b *testing.B) {
	type flight struct {
		Origin, Destination string
		Delay, Distance     int64
	}
	benchmarkSource(b, func(p string) stream.Source[flight] { return file.CSV[flight](p) })
}

func BenchmarkCSV_WithTime(b *testing.B) {
	type flight struct {
		Time   time.Time
		Origin string
		Delay  int64
	}
	benchmarkSource(b, func(p string) stream.Source[flight] { return file.CSV[flight](p) })
}

func BenchmarkExactlyOnceCSV(b *testing.B) {
	type flight struct {
		Origin, Destination string
		Delay, Distance     int64
	}
	w := openWriter(b, file.ExactlyOnceCSV[flight](b.TempDir()), stream.SinkEnv{})
	for i := range b.N {
		must(b, w.Write(stream.NoTimestamp, flight{"LAS", "PHL", int64(i % 300), 2176}))
	}
	p := prepare[flight](b, w)
	must(b, p.Persist())
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
