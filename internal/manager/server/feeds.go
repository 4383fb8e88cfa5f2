package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// feedTime limits the download of a feed.
const feedTime = 10 * time.Minute

// feedCategory is the placeholder of the category in Options.Feeds.
const feedCategory = "{category}"

// feed fetches the list of names of a category (dnspublish.Copier.Feed), and follows no redirects. The caller closes it.
func (m *Manager) feed(ctx context.Context, category string) (io.ReadCloser, error) {
	switch each := strings.Contains(m.options.Feeds, feedCategory); {
	case each && category == "":
		return nil, errors.New("the zone has no feedCategories")
	case !each && category != "":
		return nil, fmt.Errorf("the zone has feedCategories, but the URL of --response-feeds does not contain %s", feedCategory)
	}
	url := strings.ReplaceAll(m.options.Feeds, feedCategory, category)
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Timeout: feedTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	rs, err := client.Do(rq)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode != http.StatusOK {
		_ = rs.Body.Close()
		return nil, fmt.Errorf("%s returned %s", rq.URL.Redacted(), rs.Status)
	}
	if rs.ContentLength < 0 && len(rs.TransferEncoding) == 0 && rs.ProtoMajor == 1 && !rs.Uncompressed {
		_ = rs.Body.Close() // without a length, a truncated list cannot be detected
		return nil, fmt.Errorf("%s does not declare the length of its response", rq.URL.Redacted())
	}
	return rs.Body, nil
}
