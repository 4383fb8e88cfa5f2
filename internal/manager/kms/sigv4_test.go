package kms

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestSign signs the requests get-vanilla and post-vanilla of the published test suite of Signature Version 4.
func TestSign(t *testing.T) {
	s := signer{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", "us-east-1", "service"}
	for method, want := range map[string]string{
		http.MethodGet:  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		http.MethodPost: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	} {
		rq := httptest.NewRequestWithContext(t.Context(), method, "https://example.amazonaws.com/", http.NoBody)
		s.sign(rq, nil, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
		if got := rq.Header.Get("Authorization"); got != "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "+
			"SignedHeaders=host;x-amz-date, Signature="+want {
			t.Errorf("%s: %s", method, got)
		}
	}
	rq := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.amazonaws.com/", http.NoBody)
	s.session = "session"
	if s.sign(rq, nil, time.Now()); rq.Header.Get("X-Amz-Security-Token") != "session" ||
		!strings.Contains(rq.Header.Get("Authorization"), "SignedHeaders=host;x-amz-date;x-amz-security-token,") {
		t.Errorf("with a session: %v", rq.Header)
	}
}
