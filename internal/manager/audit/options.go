package audit

// Options are the start options of the manager that this package uses.
type Options struct {
	// Logs are the files of each log, oldest first, by the name of the log. A log that is not written to a file has none.
	Logs map[string][]string
}
