package dnspublish

import (
	"portolan/internal/engine/store"
	"portolan/internal/wire/checkin"
)

// Points are the service points of the fleet, as far as deployments use them.
type Points interface {
	// Changed records in a transaction that the content of a service point has changed.
	Changed(tx *store.Tx, servicePoint string)
	// Wake notifies a service point after that transaction was committed.
	Wake(servicePoint string)
	// Serving returns the state of a service point, as far as a service such as DNS is concerned.
	Serving(tx *store.Tx, servicePoint, service string) (Serving, error)
}

// Serving is the state of a service point for one service: its capabilities, its content and its connection.
type Serving struct {
	// Applications are the names of the applications for the service, whether it runs them or not.
	Applications []string
	// Exists reports whether the service point exists. Provides are the capabilities of its applications for the service.
	Exists   bool
	Provides checkin.Capabilities
	// Content is the revision that it has confirmed; the earliest one if several applications serve the content.
	Content string
	// Silent reports that it is not connected.
	Silent bool
	// Trouble are the problems that it has reported, as sentences.
	Trouble []string
}
