//go:build !race

package apitest

// underRace says that the race detector is on.
const underRace = false
