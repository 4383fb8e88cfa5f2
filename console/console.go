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

// Policy is the content security policy of the console (W3C, Content Security Policy Level 3): its own scripts, styles and pictures, no
// other origin, nothing inline, and no text that becomes a script.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
	"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"

// Base is where the console's pages lie, but for the first one, which is at /. Assets is where its scripts and styles are.
const (
	Base   = "/ui/"
	Assets = Base + "assets/"
)

// asset is a file that browsers load.
type asset struct {
	content      []byte
	kind, digest string
}

// hashed are the names of files that are named by what is in them when they are made.
var hashed = regexp.MustCompile(`-[0-9A-Z]{8}\.js$`)

// Handler serves the console: its page at / and at every path below Base, and what the page loads below Assets. Loaded files are named by
// what is in them, so that browsers keep them for ever. A path below Assets that is none is missing's.
func Handler(missing http.Handler) http.Handler {
	assets := map[string]asset{}
	files, err := fs.ReadDir(bundle, "bundle")
	if err != nil {
		panic(err) // they are a part of the program
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
		if hashed.MatchString(name) { // scripts read it by that name, too
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
