//go:build !unix

package server

// room is not asked for there.
func room(string) (*int64, error) { return nil, nil }
