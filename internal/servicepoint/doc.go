// Package servicepoint contains the agent of a service point: it enrols, checks in and runs the applications,
// probes its network and serves its diagnostics. It uses the manager only through the check-in protocol (package checkin).
package servicepoint
