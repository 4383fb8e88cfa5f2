// Package server is where a manager meets the network: its listeners, what every request goes
// through, and its doors: the address API, the fleet API, check-in, health and metrics. A door finds
// out who asks, hands the request to the room it is for, and words the answer. No rule lives here.
package server
