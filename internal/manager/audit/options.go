package audit

// Options are how the manager was started.
type Options struct {
	// Logs are the files of each log by the log's name, the oldest first; a log that the manager does not keep has none.
	Logs map[string][]string
}
