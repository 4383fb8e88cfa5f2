// Package dhcppublish compiles the settings of DHCP servers to content (portolan/internal/wire/dhcpdata), validates it, stores what is
// deployed, and provides it to service points. Deployments themselves are resources of dnspublish, which runs them one after the other.
package dhcppublish

//go:generate go run portolan/internal/engine/resource/gendoc
