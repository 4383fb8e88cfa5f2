// Package servicepoint is the service point as it sees itself: the agent that enrols and checks in,
// the probes of its network, and its diagnostics. It knows the manager only through checkin/.
package servicepoint
