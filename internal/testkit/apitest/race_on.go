//go:build race

package apitest

// UnderRace says that the race detector is on.
const UnderRace = true
