package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"portolan/internal/manager/server/middleware"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTraces checks that spans of requests and their changes are sent to a collector, as parts of the client's trace.
func TestTraces(t *testing.T) {
	var mu sync.Mutex
	spans := map[string]string{} // name -> trace
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(raw, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s is sent %v", r.URL.Path, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rs := range sent.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					const digits = "0123456789abcdef"
					var id strings.Builder
					for _, b := range s.GetTraceId() {
						id.WriteByte(digits[b>>4])
						id.WriteByte(digits[b&15])
					}
					spans[s.GetName()] = id.String()
				}
			}
		}
	}))
	defer to.Close()
	u, err := middleware.ParseTraces(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := startOnce(t, func(o *Options) { o.Traces = u })
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	m.Want(201, "POST", "/api/v2/configurations", `{"name":"main"}`, "traceparent: 00-"+trace+"-00f067aa0ba902b7-01")
	if err := m.chain.Traces.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"POST address", "change"} {
		if spans[name] != trace {
			t.Errorf("the span %s is of the trace %q; there are %v", name, spans[name], spans)
		}
	}
	for _, wrong := range []string{"", "127.0.0.1:4318", "ftp://x", "http://"} {
		if _, err := middleware.ParseTraces(wrong); err == nil {
			t.Errorf("%q is a collector", wrong)
		}
	}
}
