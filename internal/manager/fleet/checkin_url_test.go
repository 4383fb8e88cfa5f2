package fleet

import "testing"

// TestDiagnosticsURLs checks that a diagnostics URL consists of an address, a port and the one path, because users copy it into a shell.
func TestDiagnosticsURLs(t *testing.T) {
	for text, good := range map[string]bool{
		"http://127.0.0.2:8083/api/v1/diagnostics":         true,
		"http://[2001:db8::7]:9000/api/v1/diagnostics":     true,
		"http://192.0.2.7/api/v1/diagnostics":              false,
		"https://192.0.2.7:8083/api/v1/diagnostics":        false,
		"http://host:8083/api/v1/diagnostics":              false,
		"http://192.0.2.7:8083/":                           false,
		"http://192.0.2.7:8083":                            false,
		"http://192.0.2.7:8083; rm x/api/v1/diagnostics":   false,
		"http://[fe80::1%$(id)]:8083/api/v1/diagnostics":   false,
		"http://192.0.2.7:8083/api/v1/diagnostics\nrm x":   false,
		"http://u:p@192.0.2.7:8083/api/v1/diagnostics":     false,
		"http://192.0.2.7:8083/api/v1/diagnostics?x=$(id)": false,
		"http://192.0.2.7:8083/x/api/v1/diagnostics":       false,
	} {
		if got := isDiagnosticsURL(text); got != good {
			t.Errorf("%q: %v", text, got)
		}
	}
}
