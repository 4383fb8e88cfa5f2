// Package imports takes files of resources, CSV or JSON, and makes and changes what their rows say, in the background: what is kept of each
// import, how a file is read, what a row means, and what works the rows off.
package imports

//go:generate go run portolan/internal/engine/resource/gendoc
