// The program screenshots makes a picture of every screen of the console, light and dark, wide and narrow, with the sample's data: make
// screenshots. The pictures lie in the directory that it is given.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"portolan/console/browser"
	"portolan/internal/access"
	"portolan/internal/server"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: screenshots DIRECTORY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// screens are what is shown: a name, and a path in which a word in braces is found by filter: {networks:range:'10.0.0.0/24'}.
var screens = [][2]string{
	{"overview", "/"}, {"space", "/ui/space?open={blocks:range:'10.0.0.0/8'}.{blocks:range:'10.0.0.0/16'}"},
	{"block", "/ui/blocks/{blocks:range:'10.0.0.0/16'}"}, {"map", "/ui/blocks/{blocks:range:'10.0.0.0/16'}/map"},
	{"map-hilbert", "/ui/blocks/{blocks:range:'10.0.0.0/8'}/map?order=hilbert&cells=4096"}, {"find",
		"/ui/find?in={blocks:range:'10.0.0.0/8'}&count=3&length=26"},
	{"network", "/ui/networks/{networks:range:'10.0.0.0/24'}"}, {"address", "/ui/addresses/{addresses:address:'10.0.0.2'}"},
	{"names", "/ui/names"}, {"zone", "/ui/zones/{zones:absoluteName:'harbour.example'}"}, {"zone-text",
		"/ui/zones/{zones:absoluteName:'harbour.example'}?tab=text"},
	{"servers", "/ui/servers"}, {"dhcp", "/ui/dhcp"}, {"fleet", "/ui/fleet"}, {"changes", "/ui/transactions"}, {"change",
		"/ui/transactions/3"},
	{"staged", "/ui/staged"}, {"bulk", "/ui/bulk"}, {"events", "/ui/events"}, {"users", "/ui/users"}, {"locations", "/ui/locations"},
	{"everything", "/ui/all"},
	{"api", "/api/docs?q=networks+addresses"}, {"tag-groups", "/ui/tagGroups"}, {"nowhere", "/ui/nowhere"},
}

func run(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures, for everybody
		return err
	}
	data, err := os.MkdirTemp("", "portolan-screenshots-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }()
	m, err := server.Start(ctx, server.Options{Data: data, Listen: "127.0.0.1:0", CheckinListen: "127.0.0.1:0", Version: "screenshots",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if err := server.Sample(ctx, m.Address); err != nil {
		return err
	}
	token, err := m.Identity.CreateToken(ctx, access.Grant{Name: "screenshots", Role: access.Administrator, User: "admin"})
	if err != nil {
		return err
	}
	link, err := m.Identity.NewLink(ctx, "admin")
	if err != nil {
		return err
	}
	b, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	p, err := b.Open(m.URL())
	if err != nil {
		return err
	}
	if err := picture(p, dir, "signin", "/"); err != nil {
		return err
	}
	if err := p.Go("/?#sign-in=" + link); err != nil {
		return err
	}
	if err := p.Wait("document.querySelector('.side')"); err != nil {
		return err
	}
	for _, s := range screens {
		path, err := filled(m.URL(), token, s[1])
		if err != nil {
			return fmt.Errorf("%s: %w", s[0], err)
		}
		if err := picture(p, dir, s[0], path); err != nil {
			return fmt.Errorf("%s: %w", s[0], err)
		}
	}
	return nil
}

// picture takes a screen in both sizes and both sets of colours.
func picture(p *browser.Page, dir, name, path string) error {
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"wide", 1280, 800}, {"narrow", 390, 844}} {
		for _, dark := range []bool{false, true} {
			if err := p.Size(size.width, size.height, dark); err != nil {
				return err
			}
			if err := p.Go(path); err != nil {
				return err
			}
			if err := p.Still(); err != nil {
				return err
			}
			shot, err := p.Shot()
			if err != nil {
				return err
			}
			file := name + "-" + size.name
			if dark {
				file += "-dark"
			}
			if err := os.WriteFile(filepath.Join(dir, file+".png"), shot, 0o644); err != nil { //nolint:gosec // pictures, for everybody
				return err
			}
			for _, fault := range p.Faults() {
				fmt.Fprintln(os.Stderr, file+":", fault)
			}
			if wide, err := browser.Eval[float64](p, "document.documentElement.scrollWidth"); err != nil || int64(wide) > size.width {
				fmt.Fprintf(os.Stderr, "%s: %v px wide (%v)\n", file, wide, err)
			}
		}
	}
	return nil
}

// filled puts numbers in place of what stands in braces.
func filled(origin, token, path string) (string, error) {
	for {
		begin := strings.Index(path, "{")
		if begin < 0 {
			return path, nil
		}
		end := begin + strings.Index(path[begin:], "}")
		collection, filter, _ := strings.Cut(path[begin+1:end], ":")
		r, err := http.NewRequest(http.MethodGet, origin+"/api/v2/"+collection+"?limit=1&fields=id&filter="+strings.ReplaceAll(filter, "'",
			"%27"), nil)
		if err != nil {
			return "", err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		var page struct{ Data []struct{ ID int64 } }
		err = json.NewDecoder(answer.Body).Decode(&page)
		_ = answer.Body.Close()
		if err != nil || len(page.Data) == 0 {
			return "", fmt.Errorf("nothing is at %s (%w)", path[begin:end+1], err)
		}
		path = path[:begin] + fmt.Sprint(page.Data[0].ID) + path[end+1:]
	}
}
