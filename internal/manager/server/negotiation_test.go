package server

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestMediaTypes(t *testing.T) {
	m := startAlone(t)
	_, _, _, _, network := m.Basics()
	for accept, want := range map[string]string{
		"": "application/hal+json", "*/*": "application/hal+json", "application/json": "application/json", "text/csv": "text/csv; charset=utf-8",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html; charset=utf-8",
		"application/json;q=0.5,text/csv":                                 "text/csv; charset=utf-8",
		"application/hal+json;q=0, */*":                                   "application/json",
	} {
		r := m.Want(200, "GET", "/api/v2/networks", "", "Accept: "+accept)
		if got := r.Header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q gives %s, want %s", accept, got, want)
		}
	}
	if r := m.Want(200, "GET", "/api/v2/networks/"+network, "", "Accept: application/json"); strings.Contains(string(r.Body), "_links") {
		t.Errorf("application/json has links: %s", r.Body)
	}
	r := m.Want(200, "GET", "/api/v2/networks?fields=id,name,range,configuration.name", "", "Accept: text/csv")
	if want := "id,name,range,configuration.name\r\n" + network + ",office,10.0.0.0/24,main\r\n"; string(r.Body) != want {
		t.Errorf("CSV is %q, want %q", r.Body, want)
	}
	r = m.Want(200, "GET", "/api/v2/networks/"+network, "", "Accept: text/html")
	if !strings.Contains(string(r.Body), `href="/api/v2/networks/`+network+`/addresses"`) {
		t.Errorf("the page has no link to the addresses")
	}
	for _, encoding := range []string{"gzip", "zstd"} {
		r := m.Want(200, "GET", "/api/v2/locations", "", "Accept-Encoding: "+encoding)
		if got := r.Header.Get("Content-Encoding"); got != encoding {
			t.Errorf("Accept-Encoding %s gives %q", encoding, got)
		}
	}
	head := m.Want(200, "HEAD", "/api/v2/networks/"+network, "")
	if len(head.Body) != 0 || head.Header.Get("ETag") == "" {
		t.Errorf("HEAD: %v %q", head.Header, head.Body)
	}
	options := m.Want(204, "OPTIONS", "/api/v2/networks/"+network, "")
	if got := options.Header.Get("Allow"); got != "DELETE, GET, HEAD, OPTIONS, PATCH, PUT" {
		t.Errorf("Allow is %s", got)
	}
}

func TestDocumentIsServed(t *testing.T) {
	m := startAlone(t)
	r := m.Want(http.StatusOK, "GET", "/api/openapi.json", "", "Authorization:")
	if r.Text("openapi") != "3.1.0" {
		t.Errorf("the document is of OpenAPI %s", r.Text("openapi"))
	}
	if checkedIn, err := os.ReadFile("../../../api/openapi.json"); err != nil || strings.TrimSpace(string(checkedIn)) != string(r.Body) {
		t.Errorf("api/openapi.json is not what is served (%v): run make generate", err)
	}
	page := m.Want(http.StatusOK, "GET", "/api/docs", "", "Authorization:")
	for _, outside := range []string{"http://", "https://"} {
		for part := range strings.SplitSeq(string(page.Body), outside) {
			if strings.HasSuffix(part, `src="`) || strings.HasSuffix(part, `href="`) {
				t.Errorf("the page loads something from outside")
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		m.Want(http.StatusOK, "GET", path, "", "Authorization:")
	}
}
