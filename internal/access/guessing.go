package access

import (
	"fmt"
	"strings"

	"portolan/internal/event"
	"portolan/internal/store"
)

// maxShown is how much of a text that anybody may send stands in an event, in bytes.
const maxShown = 64

// GuessingEvent keeps the event that somebody guesses passwords: the name that was tried, and from where.
func GuessingEvent(tx *store.Tx, name, remote string, failures int) error {
	users, err := tx.ByName("users", 0, name)
	if err != nil {
		return err
	}
	source := int64(0)
	if len(users) > 0 {
		source = users[0].ID
	}
	if len(name) > maxShown {
		name = strings.ToValidUTF8(name[:maxShown], "") + "…"
	}
	return event.Add(tx, event.Event{EventType: "WARNING", Category: "APPLICATION", SourceName: remote,
		Message: fmt.Sprintf("%d wrong sign-ins in a row as %q from %s: further ones have to wait", failures, name, remote)}, source)
}
