package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

//go:embed bundle
var bundle embed.FS

// Policy is the content security policy of the console (W3C, Content Security Policy Level 3). It allows the console's own scripts, styles
// and pictures, but no other origin, no inline code, and no text that becomes a script.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// Base is the path prefix of the console's pages, except for the first page at /. Assets is the path prefix of its scripts and styles.
const (
	Base   = "/ui/"
	Assets = Base + "assets/"
)

// asset is a file that browsers load.
type asset struct {
	content      []byte
	kind, digest string
}

// hashed matches the names of files that contain a hash of their content.
var hashed = regexp.MustCompile(`-[0-9A-Z]{8}\.js$`)

// Handler serves the console: its page at / and at every path below Base, and its files below Assets. The URL of a file depends on its
// content, so browsers may cache it without expiry. Unknown paths below Assets are passed to missing.
func Handler(missing http.Handler) http.Handler {
	assets := map[string]asset{}
	files, err := fs.ReadDir(bundle, "bundle")
	if err != nil {
		panic(err) // the files are embedded
	}
	var page []byte
	for _, f := range files {
		content, err := bundle.ReadFile("bundle/" + f.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(content)
		assets[f.Name()] = asset{content, mime.TypeByExtension(path.Ext(f.Name())), hex.EncodeToString(sum[:8])}
	}
	page = assets["index.html"].content
	delete(assets, "index.html")
	for name, a := range assets {
		if hashed.MatchString(name) { // other scripts import it by that name
			continue
		}
		page = []byte(strings.ReplaceAll(string(page), Assets+name+`"`, Assets+name+"?"+a.digest+`"`))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", Policy)
		name, ok := strings.CutPrefix(r.URL.Path, Assets)
		if !ok {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
			return
		}
		a, ok := assets[name]
		if !ok {
			missing.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", a.kind)
		w.Header().Set("ETag", `"`+a.digest+`"`)
		w.Header().Set("Cache-Control", "no-cache")
		if r.URL.RawQuery == a.digest || hashed.MatchString(name) {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if r.Header.Get("If-None-Match") == `"`+a.digest+`"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(a.content)
	})
}
