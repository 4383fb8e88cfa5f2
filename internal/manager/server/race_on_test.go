//go:build race

package server

// underRace says that the race detector looks on, which takes several times as long.
const underRace = true
