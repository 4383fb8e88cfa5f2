package servicepoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"portolan/internal/wire/checkin"
)

// sendLogs sends the ends of the logs that the manager requested. The manager's client repeats a request that failed.
func (a *Agent) sendLogs(ctx context.Context, wanted []checkin.LogOrder) {
	for _, w := range wanted {
		request := checkin.LogRequest{ID: w.ID}
		text, err := a.supervisor.tail(w.Application, min(max(1, w.Bytes), checkin.MaxLog))
		if request.Text = text; err != nil {
			request.Problem = shortenText(err.Error())
		}
		if err := a.manager.post(ctx, checkin.LogPath, 0, request, &checkin.LogAnswer{}); err != nil && ctx.Err() == nil {
			a.log.Warn("send log failed", "application", w.Application, "error", err)
		}
	}
}

// tail returns the last bytes of the log, starting at a line.
func (p *process) tail(bytes int) ([]byte, error) {
	var text []byte
	for _, name := range []string{logFile + ".1", logFile} {
		part, err := os.ReadFile(filepath.Join(p.folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		text = append(text, part...)
	}
	if len(text) <= bytes {
		return text, nil
	}
	cut := text[len(text)-bytes:]
	for i, b := range cut {
		if b == '\n' && i+1 < len(cut) && text[len(text)-bytes-1] != '\n' {
			return cut[i+1:], nil
		}
	}
	return cut, nil
}
