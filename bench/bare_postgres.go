package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
)

// barePG serves /one/ID with a row's body. It serves /page/N by reading N rows and writing an equal share of the file for each.
func barePG(ctx context.Context, url, file string) error {
	var page []byte
	if file != "" {
		var err error
		if page, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/one/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		var body []byte
		if err == nil {
			err = pool.QueryRow(r.Context(), "SELECT body FROM resource WHERE id = $1", id).Scan(&body)
		}
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/page/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err == nil {
			err = barePage(r.Context(), w, pool, page, n)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: mux}
	go func() { <-ctx.Done(); _ = s.Close() }()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	pool.Close()
	return nil
}

func barePage(ctx context.Context, w io.Writer, pool *pgxpool.Pool, page []byte, n int) error {
	rows, err := pool.Query(ctx, "SELECT id, collection, type, name, parent, configuration, version, refs, body FROM resource WHERE "+
		"collection = 'addresses' ORDER BY id LIMIT $1", n)
	if err != nil {
		return err
	}
	defer rows.Close()
	var id, parent, configuration, version int64
	var collection, kind, refs string
	var name *string
	var body []byte
	out, written := make([]byte, 0, 80<<10), 0
	for i := 1; rows.Next(); i++ {
		if err := rows.Scan(&id, &collection, &kind, &name, &parent, &configuration, &version, &refs, &body); err != nil {
			return err
		}
		upTo := len(page) * i / n
		out = append(out, page[written:upTo]...)
		written = upTo
		if len(out) >= 64<<10 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	if _, err := w.Write(append(out, page[written:]...)); err != nil {
		return err
	}
	return rows.Err()
}
