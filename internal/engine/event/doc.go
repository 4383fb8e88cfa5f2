// Package event stores and lists events, which are records of deployments, alarms, jobs and other occurrences.
package event

//go:generate go run portolan/internal/engine/resource/gendoc
