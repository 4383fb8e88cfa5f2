package all

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestConfigurations checks that every invalid configuration is rejected with the name of the field.
func TestConfigurations(t *testing.T) {
	good := `"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9"}]`
	for _, c := range []struct{ kind, text, naming string }{
		{"dns-resolver-service", `{` + good + `}`, ""},
		{"dns-resolver-service", `{` + good + `,"policy":"random","allow":["10.0.0.0/8","fd00::/8"],"metrics":"127.0.0.1:9153",` +
			`"cache":{"entries":5,"maxTTLSeconds":60,"prefetch":true,"serveStaleSeconds":3600}}`, ""},
		{"dns-resolver-service", `{"listen":[{"address":"::1","port":5353}],"upstreams":[{"address":"[::1]:53","tlsServerName":"dns.example"}]}`, ""},
		{"dns-resolver-service", `{}`, "configuration.listen"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}]}`, "configuration.upstreams"},
		{"dns-resolver-service", `{"listen":[{"address":"quay"}],"upstreams":[{"address":"127.0.0.9"}]}`, "configuration.listen[0].address"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1","port":65536}],"upstreams":[{"address":"127.0.0.9"}]}`,
			"configuration.listen[0].port"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"},{"address":"127.0.0.1","port":53}],"upstreams":[{"address":"127.0.0.9"}]}`,
			"configuration.listen[1]"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"dns.example"}]}`, "configuration.upstreams[0].address"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9","tlsServerName":"a }\n"}]}`,
			"configuration.upstreams[0].tlsServerName"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"[fe80::1%x {\n }\n import /etc/passwd\n]:53"}]}`,
			"configuration.upstreams[0].address"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"fe80::1%x }"}]}`, "configuration.upstreams[0].address"},
		{"dns-resolver-service", `{"listen":[{"address":"fe80::1%x"}],"upstreams":[{"address":"127.0.0.9"}]}`, "configuration.listen[0].address"},
		{"dns-resolver-service", `{` + good + `,"metrics":"[fe80::1%x }]:9153"}`, "configuration.metrics"},
		{"dns-resolver-service", `{` + good + `,"allow":["fe80::%x/64"]}`, "configuration.allow[0]"},
		{"dns-resolver-service", `{` + good + `,"policy":"best"}`, "configuration.policy"},
		{"dns-resolver-service", `{` + good + `,"allow":["10.0.0.1/8"]}`, "configuration.allow[0]"},
		{"dns-resolver-service", `{` + good + `,"metrics":"here"}`, "configuration.metrics"},
		{"dns-resolver-service", `{` + good + `,"cache":{"entries":-1}}`, "configuration.cache.entries"},
		{"dns-resolver-service", `{` + good + `,"cache":{"maxTTLSeconds":100000}}`, "configuration.cache.maxTTLSeconds"},
		{"dns-resolver-service", `{` + good + `,"cash":{}}`, "cash"},
		{"dns-resolver-service", `{` + good + `,"policy":7}`, "configuration.policy"},
		{"dns-resolver-service", `{` + good + `} {}`, "configuration"},
		{"http-probe-service", `{}`, "configuration.targets"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9","port":5353}]}`, ""},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.9:53","port":5353}]}`,
			"configuration.upstreams[0].port"},
		{"dns-resolver-service", `{"listen":[{"address":"127.0.0.1"}],"upstreams":[{"address":"127.0.0.1"}]}`, "listens at this address"},
		{"http-probe-service", `{"targets":[{"url":"http://127.0.0.1/","expectStatus":204},{"address":"127.0.0.1"},{"hostname":"localhost"}]}`, ""},
		{"http-probe-service", `{"targets":[{}]}`, "configuration.targets[0]"},
		{"http-probe-service", `{"targets":[{"url":"http://127.0.0.1/","address":"127.0.0.1"}]}`, "configuration.targets[0]"},
		{"http-probe-service", `{"targets":[{"url":"ftp://127.0.0.1/"}]}`, "configuration.targets[0].url"},
		{"http-probe-service", `{"targets":[{"address":"localhost"}]}`, "configuration.targets[0].address"},
		{"http-probe-service", `{"targets":[{"address":"127.0.0.1","expectStatus":200}]}`, "configuration.targets[0].expectStatus"},
		{"http-probe-service", `{"targets":[{"name":"a\u0000b","address":"127.0.0.1"}]}`, "configuration.targets[0]"},
		{"http-probe-service", `{"targets":[{"name":"` + strings.Repeat("n", 129) + `","address":"127.0.0.1"}]}`, "configuration.targets[0]"},
		{"http-probe-service", `{"targets":[{"address":"127.0.0.1"}],"intervalSeconds":3601}`, "configuration.intervalSeconds"},
		{"http-probe-service", `{"targets":{}}`, "configuration.targets"},
	} {
		found := false
		for _, kind := range Kinds("") {
			if kind.Name != c.kind {
				continue
			}
			found = true
			err := kind.Check(json.RawMessage(c.text))
			if c.naming == "" && err != nil || c.naming != "" && (err == nil || !strings.Contains(err.Error(), c.naming)) {
				t.Errorf("%s %s: %v, want %q", c.kind, c.text, err, c.naming)
			}
		}
		if !found {
			t.Errorf("the application %s does not exist", c.kind)
		}
	}
}
