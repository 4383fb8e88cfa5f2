package store

import (
	"path/filepath"
	"time"
)

// logSpace caches the number of pages at which the log is checkpointed, which depends on the free disk space.
type logSpace struct {
	readAt    time.Time
	threshold int64
}

// minCheckpointPages is the lower bound of the threshold in pages. The log may use 1/logShare of the free disk space. logSpaceEvery is
// the interval at which the free disk space is read.
const (
	minCheckpointPages = 64
	logShare           = 16
	logSpaceEvery      = time.Second
)

// checkpointThreshold returns the number of log pages at which the log is checkpointed: checkpointPages, or less if the disk has little
// free space. The checkpoint itself needs space for pages that are new in the database.
func (r *logSpace) checkpointThreshold(path string) int64 {
	if time.Since(r.readAt) < logSpaceEvery {
		return r.threshold
	}
	r.readAt, r.threshold = time.Now(), checkpointPages
	if free, err := FreeBytes(filepath.Dir(path)); err == nil && free != nil {
		r.threshold = min(checkpointPages, max(minCheckpointPages, *free/logShare>>12))
	}
	return r.threshold
}
