package resource

import "net/netip"

// NeedsProbe is what BeforeWrite gives where the change depends on whether an address answers. All of it is
// taken back, the address is asked (API.Probe), and the change begins anew with the answer in Probed.
type NeedsProbe struct{ Addr netip.Addr }

// Error is shown where nobody can ask.
func (p NeedsProbe) Error() string { return "nobody has asked whether " + p.Addr.String() + " answers" }

// Work gives what takes too long for a transaction, such as a key of RSA: it is made outside of it where that can be.
func (c *Change) Work(about string, do func() (any, error)) (any, error) {
	if c.Made == nil {
		return do()
	}
	made := c.Made[about]
	if len(made) == 0 {
		return nil, NeedsWork{About: about, Do: do}
	}
	c.Made[about] = made[1:]
	return made[0], nil
}

// NeedsWork is what Work gives where something has yet to be made. All of the change is taken back, it is made, and the change begins anew.
type NeedsWork struct {
	About string
	Do    func() (any, error)
}

// Error is never shown.
func (n NeedsWork) Error() string { return n.About + " has yet to be made" }
