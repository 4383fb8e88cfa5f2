// Package server contains the network side of a manager: its listeners, the common request handling, and
// the endpoints: the address API, the fleet API, check-in, health and metrics. An endpoint identifies the caller,
// passes the request to the responsible package, and formats the response. It contains no business rules.
package server
