package middleware

import (
	"bufio"
	"encoding/json"
	"net/http"
)

// List writes {"data":[...]} while its members are read, so that a long list takes no memory.
type List struct {
	w       *bufio.Writer
	rw      http.ResponseWriter
	isBegun bool
}

// NewList returns a list that is written to w. Nothing is written before the first member, or End.
func NewList(w http.ResponseWriter) *List { return &List{w: bufio.NewWriterSize(w, 64<<10), rw: w} }

// Add writes a member.
func (l *List) Add(one any) error {
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return l.AddText(text)
}

// AddText writes a member that is JSON.
func (l *List) AddText(text []byte) error {
	between := ","
	if !l.isBegun {
		l.writeHead()
		between = ""
	}
	_, _ = l.w.WriteString(between) // the writer keeps its first error
	_, err := l.w.Write(text)
	return err
}

func (l *List) writeHead() {
	l.isBegun = true
	l.rw.Header().Set("Content-Type", "application/json")
	l.rw.WriteHeader(http.StatusOK)
	_, _ = l.w.WriteString(`{"data":[`)
}

// End ends the list. An error is returned where nothing was written yet; later the connection is cut, which its reader notices.
func (l *List) End(err error) error {
	switch {
	case err != nil && !l.isBegun:
		return err
	case err != nil:
		panic(http.ErrAbortHandler)
	}
	if !l.isBegun {
		l.writeHead()
	}
	_, _ = l.w.WriteString("]}\n")
	return l.w.Flush()
}
