// Package workflow stores requested changes until other users approve or deny them. A change becomes a request if the access right of the
// user has the workflow level RECOMMEND, or if the configuration requires four eyes for the type.
package workflow

//go:generate go run portolan/internal/engine/resource/gendoc
