package kms

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// signer signs requests with AWS Signature Version 4 (IAM user guide: create a signed AWS API request).
type signer struct{ access, secret, session, region, service string }

// sign adds the headers X-Amz-Date, X-Amz-Security-Token and Authorization to a request without a query. It signs all headers of the
// request.
func (s signer) sign(rq *http.Request, body []byte, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	rq.Header.Set("X-Amz-Date", stamp)
	if s.session != "" {
		rq.Header.Set("X-Amz-Security-Token", s.session)
	}
	values := map[string]string{"host": rq.URL.Host}
	names := []string{"host"}
	for name := range rq.Header {
		lower := strings.ToLower(name)
		names, values[lower] = append(names, lower), strings.TrimSpace(rq.Header.Get(name))
	}
	slices.Sort(names)
	at := rq.URL.EscapedPath()
	if at == "" {
		at = "/"
	}
	lines := []string{rq.Method, at, ""}
	for _, name := range names {
		lines = append(lines, name+":"+values[name])
	}
	signed := strings.Join(names, ";")
	lines = append(lines, "", signed, hashed(body))
	scope := strings.Join([]string{stamp[:8], s.region, s.service, "aws4_request"}, "/")
	key := []byte("AWS4" + s.secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = keyed(key, part)
	}
	signature := keyed(key, strings.Join([]string{"AWS4-HMAC-SHA256", stamp, scope, hashed([]byte(strings.Join(lines, "\n")))}, "\n"))
	rq.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.access+"/"+scope+", SignedHeaders="+signed+", Signature="+
		hex.EncodeToString(signature))
}

// hashed returns the SHA-256 of a text in hexadecimal.
func hashed(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keyed returns the HMAC-SHA-256 of a text.
func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
