package main

import (
	"strings"
	"testing"
)

// TestReport checks that a failure is printed completely and makes the command fail, that passed tests are not printed, and that the
// slowest tests come last.
func TestReport(t *testing.T) {
	const passes = `{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"p","Output":"ok  \tp\t1.5s\n"}
{"Action":"pass","Package":"p","Elapsed":1.5}
`
	const fails = `go: downloading x
{"Action":"output","Package":"q","Test":"TestB","Output":"b_test.go:3: loud\n"}
{"Action":"fail","Package":"q","Test":"TestB","Elapsed":7}
{"Action":"output","Package":"q","Output":"FAIL\tq\t7s\n"}
`
	for name, c := range map[string]struct {
		in, want string
		failed   bool
		err      bool
	}{
		"passes": {in: passes, want: "ok  \tp\t1.5s\nthe slowest tests, in seconds:\n     1.5  p TestA\n"},
		"fails": {in: passes + fails, failed: true,
			want: "ok  \tp\t1.5s\ngo: downloading x\nb_test.go:3: loud\nFAIL\tq\t7s\n" +
				"the slowest tests, in seconds:\n     7.0  q TestB\n     1.5  p TestA\n"},
		"no build": {in: `{"Action":"build-output","ImportPath":"p","Output":"x.go:1: no\n"}` + "\n" + `{"Action":"build-fail","ImportPath":"p"}`,
			failed: true, err: true, want: "x.go:1: no\nthe slowest tests, in seconds:\n"},
		"no beginning": {in: `{"Action":"output","Package":"r","Output":"TestMain: no server\n"}` + "\n" +
			`{"Action":"fail","Package":"r","Elapsed":1}`,
			failed: true, err: true, want: "TestMain: no server\nthe slowest tests, in seconds:\n"},
		"no tests":   {err: true, want: "the slowest tests, in seconds:\n"},
		"cut in two": {in: strings.TrimSuffix(passes, "\n"), want: "ok  \tp\t1.5s\nthe slowest tests, in seconds:\n     1.5  p TestA\n"},
	} {
		var out strings.Builder
		failed, err := report(strings.NewReader(c.in), &out)
		if failed != c.failed || (err != nil) != c.err || out.String() != c.want {
			t.Errorf("%s: %v %v\n%s\nwant %v\n%s", name, failed, err, out.String(), c.failed, c.want)
		}
	}
}
