package cli_test

import "regexp"

var masks = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"(submitted|ended|restored_at|triggered|registered|last_heartbeat)": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`), `"$1": "TIME"`},
	{regexp.MustCompile(`"(\w+_ms)": [0-9.e-]+`), `"$1": MS`},
	{regexp.MustCompile(`"(sum|min|avg|p50|p90|p95|p99|p999|max)": [0-9.e-]+`), `"$1": N`},
	{regexp.MustCompile(`"(state_bytes|records_in|records_out)": \d+`), `"$1": N`},
	{regexp.MustCompile(`"fingerprint": "[0-9a-f]+"`), `"fingerprint": "FINGERPRINT"`},
	{regexp.MustCompile(`"version": "[^"]+"`), `"version": "VERSION"`},
	{regexp.MustCompile(`"(go|platform)": "[^"]+"`), `"$1": "GO"`},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), `ADDRESS`},
	{regexp.MustCompile(`savepoint-[0-9a-f]+-[0-9a-f]+`), `savepoint-NAME`},
	{regexp.MustCompile(`[0-9a-f]{16}`), `ID`},
}
