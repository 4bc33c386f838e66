package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weirstream/weir/internal/location"
)

// defaultEndpoint is Amazon's; the region of the bucket decides which host it is.
const defaultEndpoint = "https://s3.amazonaws.com"

// defaultRegion is for stores that have none: the protocol wants a name for the signature.
const defaultRegion = "us-east-1"

// The limits of part-size: the store allows no smaller part than the lowest, and a part is in memory as a whole.
const (
	minPartMiB     = 5
	defaultPartMiB = 8
	maxPartMiB     = 512
)

// The settings of a location.
const (
	keyEndpoint  = "endpoint"
	keyRegion    = "region"
	keyPathStyle = "path-style"
	keyProfile   = "profile"
	keyPartSize  = "part-size-mib"
)

// Config says where files are, and how the store is spoken to. It has no secrets.
type Config struct {
	Bucket  string
	Prefix  string // of all keys, without a slash at its end; empty: the whole bucket
	Service Service
}

// Service says which bucket's server is spoken to, and how. Two configurations with the same service and bucket share their connections.
type Service struct {
	Endpoint  string // scheme://host[:port]
	Region    string // empty: the store is asked
	PathStyle string // "true", "false", or empty: what the endpoint is known for
	Profile   string // of the shared credentials file; empty: AWS_PROFILE, or "default"
	PartBytes int
}

// Parse reads a location like s3://bucket/prefix?region=eu-central-1. What it does not say is taken from the environment. The prefix is taken as it is
// written, without any encoding.
func Parse(at string, env func(string) string) (Config, error) {
	dir, settings := location.Cut(at)
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(dir, "s3://"), "/")
	if strings.Contains(dir, "@") {
		// The location is not shown: it seems to have a secret in it.
		return Config{}, errors.New("an s3:// location has no user and no password; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use a shared credentials file")
	}
	fail := func(format string, args ...any) (Config, error) {
		return Config{}, fmt.Errorf("location %s: %w", dir, fmt.Errorf(format, args...))
	}
	if bucket == "" {
		return fail("it names no bucket; write s3://BUCKET/PREFIX")
	}
	prefix = strings.Trim(prefix, "/")
	if strings.ContainsAny(prefix, "?#\\\x00") || slices.ContainsFunc(strings.Split(prefix, "/"), func(s string) bool { return s == "" && prefix != "" || s == "." || s == ".." }) {
		return fail("the prefix %q is not a clean path", prefix)
	}
	query, err := url.ParseQuery(strings.TrimPrefix(settings, "?"))
	if err != nil {
		return fail("the settings behind the question mark cannot be read") // the cause would show them
	}
	for key, values := range query {
		if !slices.Contains(settingKeys(), key) {
			return fail("unknown setting %q; there are %s", key, strings.Join(settingKeys(), ", "))
		}
		if len(values) > 1 {
			return fail("the setting %s is given %d times", key, len(values))
		}
	}
	c := Config{Bucket: bucket, Prefix: prefix}
	if c.Service, err = service(query, env); err != nil {
		return fail("%w", err)
	}
	return c, nil
}

func settingKeys() []string {
	return []string{keyEndpoint, keyRegion, keyPathStyle, keyProfile, keyPartSize}
}

func service(query url.Values, env func(string) string) (Service, error) {
	s := Service{
		Endpoint:  cmp.Or(query.Get(keyEndpoint), env("AWS_ENDPOINT_URL_S3"), env("AWS_ENDPOINT_URL"), defaultEndpoint),
		Region:    cmp.Or(query.Get(keyRegion), env("AWS_REGION"), env("AWS_DEFAULT_REGION")),
		PathStyle: query.Get(keyPathStyle), Profile: query.Get(keyProfile), PartBytes: defaultPartMiB << 20,
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return s, errors.New("the endpoint is not of the form http://HOST[:PORT] or https://HOST[:PORT]")
	}
	s.Endpoint = u.Scheme + "://" + u.Host
	if s.Region == "" && s.Endpoint != defaultEndpoint {
		s.Region = defaultRegion
	}
	switch s.PathStyle {
	case "", "true", "false":
	default:
		return s, fmt.Errorf("the setting %s is %q; it can be true or false", keyPathStyle, s.PathStyle)
	}
	if text := query.Get(keyPartSize); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minPartMiB || n > maxPartMiB {
			return s, fmt.Errorf("the setting %s is %q; it can be %d to %d", keyPartSize, text, minPartMiB, maxPartMiB)
		}
		s.PartBytes = n << 20
	}
	return s, nil
}
