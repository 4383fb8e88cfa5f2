package server

import (
	"bufio"
	"encoding/json"
	"net/http"
)

// list writes {"data":[...]} as it is read, so that its length is nobody's memory.
type list struct {
	w     *bufio.Writer
	rw    http.ResponseWriter
	begun bool
}

func newList(w http.ResponseWriter) *list { return &list{w: bufio.NewWriterSize(w, 64<<10), rw: w} }

// add writes one more.
func (l *list) add(one any) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return l.addText(text)
}

// addText writes one more, which is JSON.
func (l *list) addText(text []byte) error {
	between := ","
	if !l.begun {
		l.begin()
		between = ""
	}
	_, _ = l.w.WriteString(between) // the writer keeps its first error
	_, err := l.w.Write(text)
	return err
}

func (l *list) begin() {
	l.begun = true
	l.rw.Header().Set("Content-Type", "application/json")
	l.rw.WriteHeader(http.StatusOK)
	_, _ = l.w.WriteString(`{"data":[`)
}

// end ends the list; with an error it is broken off.
func (l *list) end(err error) error {
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if !l.begun {
		l.begin()
	}
	_, _ = l.w.WriteString("]}\n")
	return l.w.Flush()
}
