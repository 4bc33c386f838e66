package stream

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Definition is a job that a binary has: a name and the function that connects its streams.
type Definition struct {
	Name        string
	Description string
	Build       func(*Job) error
}

// Define names a job definition.
func Define(name, description string, build func(*Job) error) Definition {
	return Definition{Name: name, Description: description, Build: build}
}

// Job collects the streams of one job while its definition runs. It is used by one goroutine.
type Job struct {
	name        string
	params      map[string]string
	known       map[string]Parameter // that the definition has asked for
	nodes       []*Node
	hooks       []HookDefinition
	parallelism int
	errs        []error
}

// NewJob returns an empty job to run a definition on. Runtimes call it, users do not.
func NewJob(name string, params map[string]string) *Job {
	return &Job{name: name, params: params, known: map[string]Parameter{}}
}

// Name is the name under which the job was submitted.
func (j *Job) Name() string { return j.name }

// Nodes are the operators in the order of their creation: every node comes after its inputs.
func (j *Job) Nodes() []*Node { return j.nodes }

// DefaultParallelism is what SetParallelism said, 0 if it was not called.
func (j *Job) DefaultParallelism() int { return j.parallelism }

// SetParallelism sets the parallelism of operators that do not choose one. A submission's own choice wins.
func (j *Job) SetParallelism(n int) {
	if n < 1 {
		j.fail("parallelism %d of job %s is not positive", n, j.name)
	}
	j.parallelism = n
}

// Err returns all mistakes of the definition, joined: missing, malformed and unknown parameters, duplicate ids, operators without id.
func (j *Job) Err() error {
	errs := slices.Clone(j.errs)
	for _, name := range slices.Sorted(maps.Keys(j.params)) {
		if _, ok := j.known[name]; !ok {
			errs = append(errs, fmt.Errorf("job %s has no parameter %q; it has: %s", j.name, name, j.describeParams()))
		}
	}
	return errors.Join(errs...)
}

func (j *Job) describeParams() string {
	if len(j.known) == 0 {
		return "none"
	}
	var out []string
	for _, p := range j.Parameters() {
		if p.Default != "" {
			p.Name += " (default " + p.Default + ")"
		}
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}

// Parameter is a parameter that a definition has asked for.
type Parameter struct {
	Name     string
	Default  string // of one that is not required
	Required bool
}

// Parameters lists what the definition has asked for so far, sorted by name.
func (j *Job) Parameters() []Parameter {
	return slices.SortedFunc(maps.Values(j.known), func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
}

// fail records a mistake of the definition.
func (j *Job) fail(format string, args ...any) {
	j.errs = append(j.errs, fmt.Errorf(format, args...))
}

// Param returns a required parameter. When it is missing the submission fails with a message that names it.
func (j *Job) Param(name string) string {
	j.known[name] = Parameter{Name: name, Required: true}
	v, ok := j.params[name]
	if !ok {
		j.fail("job %s needs parameter %q (weir run %s --set %s=...)", j.name, name, j.name, name)
	}
	return v
}

// ParamOr returns a parameter, or def when it was not given.
func (j *Job) ParamOr(name, def string) string {
	j.known[name] = Parameter{Name: name, Default: def}
	if v, ok := j.params[name]; ok {
		return v
	}
	return def
}

// IntParam returns a whole-number parameter, or def when it was not given.
func (j *Job) IntParam(name string, def int) int {
	return parseParam(j, name, def, strconv.Itoa, strconv.Atoi, "a whole number")
}

// BoolParam returns a true/false parameter, or def when it was not given.
func (j *Job) BoolParam(name string, def bool) bool {
	return parseParam(j, name, def, strconv.FormatBool, strconv.ParseBool, "true or false")
}

// DurationParam returns a duration parameter such as "1m30s", or def when it was not given.
func (j *Job) DurationParam(name string, def time.Duration) time.Duration {
	return parseParam(j, name, def, time.Duration.String, time.ParseDuration, "a duration such as 1m30s")
}

// ChoiceParam returns a parameter that must be one of choices; the first is the default.
func (j *Job) ChoiceParam(name string, choices ...string) string {
	v := j.ParamOr(name, choices[0])
	if !slices.Contains(choices, v) {
		j.fail("parameter %s=%q of job %s must be one of %s", name, v, j.name, strings.Join(choices, ", "))
	}
	return v
}

func parseParam[T any](j *Job, name string, def T, format func(T) string, parse func(string) (T, error), want string) T {
	text := j.ParamOr(name, format(def))
	v, err := parse(text)
	if err != nil {
		j.fail("parameter %s=%q of job %s must be %s", name, text, j.name, want)
		return def
	}
	return v
}

// Fail records a mistake that the definition itself has found, e.g. a parameter out of range.
func (j *Job) Fail(err error) { j.errs = append(j.errs, err) }

// add registers a node; an id that is empty or taken is a mistake.
func (j *Job) add(n *Node) *Node {
	if n.ID == "" && n.Stateful {
		j.fail("a %s operator of job %s has no id: operators with state need one that stays the same between versions", n.Kind, j.name)
	}
	if n.ID == "" {
		n.ID = fmt.Sprintf("%s-%d", n.Kind, len(j.nodes)+1)
	}
	if strings.ContainsFunc(n.ID, notInID) {
		j.fail("operator id %q of job %s may hold letters, digits, '-', '_' and '.' only", n.ID, j.name)
	}
	if slices.ContainsFunc(j.nodes, func(o *Node) bool { return o.ID == n.ID }) {
		j.fail("two operators of job %s have the id %q", j.name, n.ID)
	}
	j.nodes = append(j.nodes, n)
	return n
}

// notInID tells runes that would be trouble in file names, logs and metric labels.
func notInID(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
