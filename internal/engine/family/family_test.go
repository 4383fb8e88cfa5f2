package family_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"portolan/internal/base/problem"
	"portolan/internal/engine/family"
)

// sites is an API at its own root, with one path.
func sites() *family.Family {
	admit := func(r *http.Request) (*http.Request, error) {
		if r.Header.Get("Authorization") == "" {
			return nil, problem.New(http.StatusUnauthorized, "UNAUTHORIZED", "sign in")
		}
		return r, nil
	}
	return &family.Family{Name: "edge", Tag: "sites", Errors: family.BriefErrors(), Paths: []family.Path{{
		Pattern: "/v1/api/sites/{id}", Parameters: []family.Parameter{{Name: "id", Description: "The id of the site."}},
		Operations: []family.Operation{{
			Method: http.MethodGet, ID: "getSite", Summary: "Fetch a site", Access: family.Access{Schemes: []string{"bearer"}, Admit: admit},
			Query:   []family.Parameter{{Name: "wide", Description: "Whether to give all of it."}},
			Success: family.Success{Status: http.StatusOK, Description: "The site.", Schema: family.Ref("Site")},
			Handle: func(w http.ResponseWriter, r *family.Request) error {
				_, err := w.Write([]byte(r.PathValue("id")))
				return err
			},
		}, {
			Method: http.MethodPut, ID: "replaceSite", Summary: "Replace a site",
			Body:    &family.Body{Schema: family.Object(family.Schema{"name": family.Text()}, "name"), Refused: []string{"legacy"}},
			Success: family.Success{Status: http.StatusNoContent, Description: "It is replaced."},
			Handle: func(w http.ResponseWriter, r *family.Request) error {
				values, err := r.Strings("name")
				switch {
				case err != nil:
					return err
				case values["name"] == "":
					return family.Missing("name")
				}
				w.WriteHeader(http.StatusNoContent)
				return nil
			},
		}},
	}}}
}

// ask sends a request to the family and returns the answer, or the error of the handler.
func ask(t *testing.T, method, path, body string, headers ...string) (*httptest.ResponseRecorder, *problem.Problem) {
	t.Helper()
	f := sites()
	var failed error
	mux := http.NewServeMux()
	for i := range f.Paths {
		serve := f.Paths[i].Handler()
		mux.HandleFunc(f.Paths[i].Pattern, func(w http.ResponseWriter, r *http.Request) { failed = serve(w, r) })
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	p, _ := problem.As(failed)
	if failed != nil && p == nil {
		t.Fatal(failed)
	}
	return w, p
}

// TestOperations checks that methods, callers, parameters and bodies follow the declaration.
func TestOperations(t *testing.T) {
	const signedIn, isJSON = "Authorization: Bearer x", "Content-Type: application/json"
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		code, ignored      string
	}{
		"read":               {"GET", "/v1/api/sites/7", "", []string{signedIn}, 200, "", ""},
		"read the head":      {"HEAD", "/v1/api/sites/7", "", []string{signedIn}, 200, "", ""},
		"known parameter":    {"GET", "/v1/api/sites/7?wide=1", "", []string{signedIn}, 200, "", ""},
		"unknown parameter":  {"GET", "/v1/api/sites/7?narrow=1", "", []string{signedIn}, 200, "", "?narrow"},
		"nobody":             {"GET", "/v1/api/sites/7", "", nil, 401, "UNAUTHORIZED", ""},
		"methods":            {"OPTIONS", "/v1/api/sites/7", "", nil, 204, "", ""},
		"wrong method":       {"DELETE", "/v1/api/sites/7", "", nil, 405, "MethodNotAllowed", ""},
		"long URL":           {"GET", "/v1/api/sites/7?wide=" + strings.Repeat("x", 70000), "", []string{signedIn}, 414, "URITooLong", ""},
		"write":              {"PUT", "/v1/api/sites/7", `{"name":"quay"}`, []string{isJSON}, 204, "", ""},
		"unknown member":     {"PUT", "/v1/api/sites/7", `{"name":"quay","color":1}`, []string{isJSON}, 204, "", "color"},
		"known, and refused": {"PUT", "/v1/api/sites/7", `{"name":"quay","legacy":1}`, []string{isJSON}, 204, "", ""},
		"missing member":     {"PUT", "/v1/api/sites/7", `{}`, []string{isJSON}, 400, "MissingRequiredField", ""},
		"member of a type":   {"PUT", "/v1/api/sites/7", `{"name":7}`, []string{isJSON}, 400, "InvalidResourceFieldValue", ""},
		"no object":          {"PUT", "/v1/api/sites/7", `[]`, []string{isJSON}, 400, "JsonDeserializationError", ""},
		"media type":         {"PUT", "/v1/api/sites/7", `{}`, []string{"Content-Type: text/plain"}, 415, "", ""},
		"too large":          {"PUT", "/v1/api/sites/7", `{"name":"` + strings.Repeat("x", 200<<10) + `"}`, []string{isJSON}, 413, "RequestTooLarge", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := ask(t, c.method, c.path, c.body, c.headers...)
			status, code := w.Code, ""
			if p != nil {
				status, code = p.Status, p.Code
			}
			if status != c.status || c.code != "" && code != c.code {
				t.Errorf("the answer is %d %s, %v; want %d %s", status, code, p, c.status, c.code)
			}
			if ignored := w.Header().Get("x-portolan-ignored"); ignored != c.ignored {
				t.Errorf("ignored is %q, want %q", ignored, c.ignored)
			}
			if c.status == 405 || c.status == 204 && c.method == "OPTIONS" {
				if allow := w.Header().Get("Allow"); allow != "GET, HEAD, OPTIONS, PUT" {
					t.Errorf("Allow is %q", allow)
				}
			}
		})
	}
}

// TestDocument checks that the OpenAPI document follows the same declaration.
func TestDocument(t *testing.T) {
	path := sites().Document()["/v1/api/sites/{id}"].(family.Schema)
	get, put := path["get"].(family.Schema), path["put"].(family.Schema)
	if get["operationId"] != "getSite" || len(get["security"].([]any)) != 1 || len(put["security"].([]any)) != 0 {
		t.Errorf("the operations are %v and %v", get, put)
	}
	for _, status := range []string{"413", "415"} { // a body may be too large or of another type
		if _, there := put["responses"].(family.Schema)[status]; !there {
			t.Errorf("PUT does not answer %s", status)
		}
		if _, there := get["responses"].(family.Schema)[status]; there {
			t.Errorf("GET answers %s", status)
		}
	}
	properties := put["requestBody"].(family.Schema)["content"].(family.Schema)["application/json"].(family.Schema)["schema"].(family.Schema)
	if _, there := properties["properties"].(family.Schema)["legacy"]; there {
		t.Error("a member that is always refused is in the document")
	}
	if parameters := path["parameters"].([]any); len(parameters) != 1 {
		t.Errorf("the path has the parameters %v", parameters)
	}
}

// TestErrors checks the forms of errors. The address API asks for a password, other APIs for a token; their errors contain the message
// twice.
func TestErrors(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	script := r.Clone(t.Context())
	script.Header.Set("Sec-Fetch-Mode", "cors")
	both, one := []string{`Basic realm="Portolan", charset="UTF-8"`, `Bearer realm="Portolan"`}, []string{`Bearer realm="Portolan"`}
	if got := family.PlainErrors().Challenges(r); !slices.Equal(got, both) {
		t.Errorf("the challenges are %q", got)
	}
	if got := family.PlainErrors().Challenges(script); !slices.Equal(got, one) {
		t.Errorf("the challenges of a script are %q", got)
	}
	if got := family.BriefErrors().Challenges(r); !slices.Equal(got, one) {
		t.Errorf("the challenges of another API are %q", got)
	}
}
