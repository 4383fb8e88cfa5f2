package servicepoint

import (
	"context"

	"portolan/internal/checkin"
)

// sendLogs sends the ends of logs that somebody waits for. One that cannot be sent is asked for again by who waits.
func (a *Agent) sendLogs(ctx context.Context, wanted []checkin.WantedLog) {
	for _, w := range wanted {
		request := checkin.LogRequest{ID: w.ID}
		text, err := a.supervisor.tail(w.Application, min(max(1, w.Bytes), checkin.MostLog))
		if request.Text = text; err != nil {
			request.Problem = shortened(err.Error())
		}
		if err := a.manager.post(ctx, checkin.LogPath, 0, request, &checkin.LogAnswer{}); err != nil && ctx.Err() == nil {
			a.log.Warn("a log cannot be sent", "application", w.Application, "error", err)
		}
	}
}
