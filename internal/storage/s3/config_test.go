package s3

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse_SettingsBeforeEnvironmentBeforeDefaults(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	for _, c := range []struct {
		at   string
		env  map[string]string
		want Config
	}{
		{"s3://b", nil, Config{"b", "", Service{defaultEndpoint, "", "", "", 8 << 20}}},
		{"s3://b/", map[string]string{"AWS_REGION": "r"}, Config{"b", "", Service{defaultEndpoint, "r", "", "", 8 << 20}}},
		{"s3://b/a/c/", map[string]string{"AWS_DEFAULT_REGION": "r"}, Config{"b", "a/c", Service{defaultEndpoint, "r", "", "", 8 << 20}}},
		{"s3://b/a", map[string]string{"AWS_ENDPOINT_URL": "http://h:1/"}, Config{"b", "a", Service{"http://h:1", "us-east-1", "", "", 8 << 20}}},
		{
			"s3://b/a", map[string]string{"AWS_ENDPOINT_URL": "http://h:1", "AWS_ENDPOINT_URL_S3": "https://s"},
			Config{"b", "a", Service{"https://s", "us-east-1", "", "", 8 << 20}},
		},
		{
			"s3://b/a?endpoint=http://127.0.0.1:7070&region=x&path-style=true&profile=p&part-size-mib=16",
			map[string]string{"AWS_ENDPOINT_URL_S3": "https://s", "AWS_REGION": "r"}, Config{"b", "a", Service{"http://127.0.0.1:7070", "x", "true", "p", 16 << 20}},
		},
		{"s3://b/with space/%20", nil, Config{"b", "with space/%20", Service{defaultEndpoint, "", "", "", 8 << 20}}},
	} {
		got, err := Parse(c.at, env(c.env))
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.at, err, diff)
		}
	}
}

func TestParse_RefusesWhatItDoesNotUnderstand(t *testing.T) {
	none := func(string) string { return "" }
	for _, at := range []string{
		"s3://", "s3:///a", "s3://b/a/../c", "s3://b/./c", "s3://b/a//c", "s3://b/a#c", "s3://b/a\\c", "s3://k:s@b/a", "s3://k@b",
		"s3://b/a?%zz", "s3://b/a?unknown=1", "s3://b/a?region=1;2", "s3://b/a?endpoint=ftp://h", "s3://b/a?endpoint=h:1", "s3://b/a?endpoint=http://h/path",
		"s3://b/a?endpoint=http://", "s3://b/a?path-style=1", "s3://b/a?part-size-mib=0", "s3://b/a?part-size-mib=x", "s3://b/a?part-size-mib=513",
	} {
		if c, err := Parse(at, none); err == nil {
			t.Errorf("%s: %+v", at, c)
		}
	}
}
