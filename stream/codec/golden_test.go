package codec

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// golden checks bytes and schema that state of released versions has: they must never change.
func golden[T any](t *testing.T, v T, schema, bytes string) {
	t.Helper()
	c := mustFor[T](t)
	if c.Schema() != schema {
		t.Errorf("schema of %T:\n got %s\nwant %s", v, c.Schema(), schema)
	}
	if got := hex.EncodeToString(mustAppend(t, c, v)); got != bytes {
		t.Errorf("%T %+v:\n got %s\nwant %s", v, v, got, bytes)
	}
	src, err := hex.DecodeString(bytes)
	if err != nil {
		t.Fatal(err)
	}
	got, rest, err := c.Decode(src)
	if err != nil || len(rest) > 0 || !equal(t, c, got, v) {
		t.Errorf("%s became %+v, rest %x, %v", bytes, got, rest, err)
	}
}

func TestCodec_Format_NeverChanges(t *testing.T) {
	three := int64(3)
	golden(t, true, "bool", "01")
	golden(t, -1, "int64", "01")
	golden(t, int8(-2), "int8", "fe")
	golden(t, int16(300), "int16", "d804")
	golden(t, int32(-300), "int32", "d704")
	golden(t, int64(-1<<63), "int64", "ffffffffffffffffff01")
	golden(t, uint(300), "uint64", "ac02")
	golden(t, uint8(200), "uint8", "c8")
	golden(t, uint16(300), "uint16", "ac02")
	golden(t, uint32(300), "uint32", "ac02")
	golden(t, uint64(1<<63), "uint64", "80808080808080808001")
	golden(t, float32(1.5), "float32", "0000c03f")
	golden(t, 1.5, "float64", "000000000000f83f")
	golden(t, "abc", "string", "03616263")
	golden(t, []byte("abc"), "bytes", "04616263")
	golden(t, []byte(nil), "bytes", "00")
	golden(t, 2*time.Second, "int64", "80d0acf30e")
	golden(t, time.Time{}, "time", "ffdb8ff9ce0300")
	golden(t, time.Date(2013, 1, 1, 5, 15, 0, 7, time.UTC), "time", "a8c3938e0a07")
	golden(t, &three, "*int64", "0106")
	golden(t, (*int64)(nil), "*int64", "00")
	golden(t, []string{"a", ""}, "[]string", "03016100")
	golden(t, [2]int16{1, -1}, "[2]int16", "0201")
	golden(t, [2]uint8{1, 255}, "[2]uint8", "01ff")
	golden(t, map[string]int{"b": 2, "a": 1, "": 0}, "map[string]int64", "0400000161020162"+"04")
	golden(t, wrapperspb.String("abc"), "proto(google.protobuf.StringValue)", "060a03616263")
	golden(t, netip.AddrFrom4([4]byte{10, 0, 0, 1}), "binary(netip.Addr)", "040a000001")
	golden(t, Six{1, 2, "JFK", "LAX", 1.5, true}, "struct{ID:int64,Time:int64,Origin:string,Dest:string,Delay:float64,Late:bool}",
		"0204"+"034a464b"+"034c4158"+"000000000000f83f"+"01")
	golden(t, Nested{}, "struct{Inner:struct{name:string,At:time,Raw:bytes},Flag:bool,Ptr:*struct{name:string,At:time,Raw:bytes},Deep:**int32,"+
		"List:[]struct{name:string,At:time,Raw:bytes},Matrix:[2][3]int16,ID:[16]uint8,Signed:[3]int8,Empty:struct{},Voids:[]struct{},None:[0]int64,"+
		"Index:map[string][]uint64,ByKey:map[[2]int8]map[int64]*struct{name:string,At:time,Raw:bytes},Set:map[struct{A:string,B:uint16}]struct{},"+
		"Stamp:time,Addr:binary(netip.Addr),Hosts:[]binary(netip.AddrPort),Msg:proto(google.protobuf.StringValue),Msgs:map[string]proto(google.protobuf.Int64Value),Tail:struct{}}",
		"00"+"ffdb8ff9ce0300"+"00"+"00"+"00"+"00"+"00"+"000000000000"+"00000000000000000000000000000000"+"000000"+"00"+"00"+"00"+"00"+
			"ffdb8ff9ce0300"+"00"+"00"+"00"+"00")
}

func TestHash_Values_NeverChange(t *testing.T) {
	goldenHash(t, 0, 0xe220a8397b1dcdaf)
	goldenHash(t, int8(-1), 0xe4d971771b652c20)
	goldenHash(t, int64(-1), 0xe4d971771b652c20)
	goldenHash(t, uint16(1), 0x910a2dec89025cc1)
	goldenHash(t, int32(1), 0x910a2dec89025cc1)
	goldenHash(t, true, 0x910a2dec89025cc1)
	goldenHash(t, "", 0x2d06800538d394c2)
	goldenHash(t, "JFK", 0x285b488641389eef)
	goldenHash(t, Name("JFK"), 0x285b488641389eef)
	goldenHash(t, [3]byte{'J', 'F', 'K'}, 0x285b488641389eef)
	goldenHash(t, [2]string{"JFK", "LAX"}, 0x6357e4e409bf4c90)
	goldenHash(t, struct {
		Origin string
		Hour   int32
	}{"JFK", 400000}, 0xefa093e1cf513208)
}

func goldenHash[K comparable](t *testing.T, k K, want uint64) {
	t.Helper()
	hash, err := Hash[K]()
	if err != nil {
		t.Fatal(err)
	}
	if got := hash(k); got != want {
		t.Errorf("hash of %s %v is %#x, want %#x", reflect.TypeFor[K](), k, got, want)
	}
}
