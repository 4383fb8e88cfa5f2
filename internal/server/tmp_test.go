package server

import (
	"io"
	"net/http"
	"testing"
)

func TestProfGet(t *testing.T) {
	m := startManager(t)
	_, _, _, _, n := m.basics()
	h, err := m.apiHandler()
	_ = h
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 60000; i++ {
		rq, _ := http.NewRequest("GET", "/api/v2/networks/"+n, nil)
		rq.Header.Set("Authorization", "Bearer "+m.token)
		rq.RequestURI = rq.URL.Path
		w := &discard{h: http.Header{}}
		h.ServeHTTP(w, rq)
		if w.s != 200 {
			t.Fatal(w.s)
		}
	}
}

type discard struct {
	h http.Header
	s int
}

func (d *discard) Header() http.Header { return d.h }
func (d *discard) WriteHeader(s int)   { d.s = s }
func (d *discard) Write(b []byte) (int, error) {
	if d.s == 0 {
		d.s = 200
	}
	return io.Discard.Write(b)
}

func TestProfCreate(t *testing.T) {
	m := startManager(t)
	_, _, _, b, _ := m.basics()
	n := m.id("/api/v2/blocks/"+b+"/networks", `{"type":"IPv4Network","range":"10.128.0.0/9"}`)
	for i := 0; i < 5000; i++ {
		m.want(201, "POST", "/api/v2/networks/"+n+"/addresses", `{"type":"IPv4Address","state":"STATIC","name":"x"}`)
	}
}
