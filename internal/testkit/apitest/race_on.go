//go:build race

package apitest

// UnderRace reports whether the race detector is enabled.
const UnderRace = true
