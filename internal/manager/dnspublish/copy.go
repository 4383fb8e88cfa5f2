package dnspublish

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/base/problem"
	"portolan/internal/engine/event"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/dns/transfer"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// refresh checks a zone, copies it if it has changed, and sets the time of the next check.
func (c *Copier) refresh(ctx context.Context, z *copiedZone) {
	began := time.Now()
	soa, what, err := c.copy(ctx, z)
	if errors.Is(err, errConcurrentDeployment) { // not an error of the zone
		c.mu.Lock()
		z.busy, z.next = false, time.Now().Add(minTimer)
		c.mu.Unlock()
		return
	}
	c.Copied(what)
	wait := firstRetry
	switch {
	case z.follows != nil && err == nil:
		wait, z.follows.failures = max(c.followEvery(), followRest*time.Since(began)), 0
	case z.follows != nil:
		wait = min(firstRetry<<min(z.follows.failures, 10), maxFollowRetry)
		z.follows.failures++
	case err == nil && z.policy != nil && z.policy.RefreshTime() > 0:
		wait = z.policy.RefreshTime()
	case err == nil:
		wait = clampTimer(min(soa.Refresh, soa.Expire))
	case soa != nil:
		wait = clampTimer(soa.Retry)
	}
	c.mu.Lock()
	z.busy = false
	if z.next = time.Now().Add(wait); z.isRequested {
		z.next = time.Time{}
	}
	before := z.lastError
	if z.lastError = ""; err != nil {
		z.lastError = err.Error()
	}
	isReported := z.lastError == before
	c.mu.Unlock()
	if ctx.Err() != nil || err == nil && (z.follows == nil || isReported) {
		return
	}
	if err != nil && !isReported {
		c.log.Error("zone copy failed", "zone", z.name, "error", err)
	}
	switch {
	case err == nil:
		err = c.addFollowEvent(ctx, z, isReported, "INFO", "following resumed")
	case z.follows != nil:
		err = c.addFollowEvent(ctx, z, isReported, "WARNING", "it cannot be followed and is unchanged: "+firstLine(err))
	default:
		err = c.expire(ctx, z, soa, err, isReported)
	}
	if err != nil {
		c.log.Error("zone copy state not stored", "zone", z.name, "error", err)
	}
}

func clampTimer(seconds uint32) time.Duration {
	return min(max(time.Duration(seconds)*time.Second, minTimer), maxTimer)
}

// copy checks a zone, and copies it if its serial number has changed. soa is the SOA that is served or was received; nil if none is known.
// what is the kind of result (see Copier.Copied).
func (c *Copier) copy(ctx context.Context, z *copiedZone) (soa *wire.SOA, what string, err error) {
	what = "failed"          //nolint:wastedassign // for a panic
	defer recoverFault(&err) // received data must not stop the copying of other zones
	if z.follows != nil {
		return c.follow(ctx, z)
	}
	before, err := c.deployed(ctx, z)
	if err != nil {
		return nil, "failed", err
	}
	soa = before.soa //nolint:wastedassign // for a panic
	if z.isFeed() {
		return c.takeFeed(ctx, z, before)
	}
	if len(z.primaries) == 0 {
		return before.soa, "failed", errors.New("its primary servers have no addresses: set the addresses of their interfaces")
	}
	for _, at := range z.primaries {
		var is *wire.SOA
		if is, err = at.authority(ctx, z.name); err != nil {
			continue
		}
		known := z.sourceKnown && before.refreshed > 0 && before.soa != nil
		if known && int32(is.Serial-before.soa.Serial) <= 0 { //nolint:gosec // as RFC 1982 compares
			return is, "current", c.recordRefresh(ctx, z, nil)
		}
		var p *publication
		if p, is, err = c.transfer(ctx, z, at, before); err != nil {
			continue
		}
		if err = c.recordRefresh(ctx, z, p); err != nil {
			return before.soa, "failed", err
		}
		z.sourceKnown = true
		if p.after == nil {
			return is, "changed", nil
		}
		return is, "copied", nil
	}
	return before.soa, "failed", err
}

// copiedNow is the deployed state of a copied zone: soa is nil and isDeployed is false if nothing is deployed.
type copiedNow struct {
	deployedZone
	isDeployed bool
	refreshed  int64
	soa        *wire.SOA
}

func (c *Copier) deployed(ctx context.Context, z *copiedZone) (now copiedNow, err error) {
	apex, err := keyOf(z.name)
	if err != nil {
		return now, err
	}
	err = c.api.Store.View(ctx, func(tx *store.Tx) (err error) {
		now = copiedNow{}
		if now.deployedZone, now.isDeployed, err = readDeployed(tx, z.id); err != nil || !now.isDeployed {
			return err
		}
		if now.refreshed, _, err = readCopy(tx, z.id); err != nil {
			return err
		}
		entries, err := deployedOf(tx, z.id, names{apex: true})
		now.soa = soaIn(entries)
		return err
	})
	return now, err
}

// readCopy returns the time of the last successful check of a zone, in Unix milliseconds, 0 for never, and whether the zone has expired.
func readCopy(tx *store.Tx, zone string) (refreshed int64, expired bool, err error) {
	var is int64
	err = tx.QueryRow("SELECT refreshed, expired FROM dns_copy WHERE zone = ?", zone).Scan(&refreshed, &is)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return refreshed, is != 0, err
}

// recordRefresh records a successful check of a zone, and publishes its content if it has changed.
func (c *Copier) recordRefresh(ctx context.Context, z *copiedZone, p *publication) error {
	return c.commit(ctx, z, p, func(tx *store.Tx, before int64, expired bool) (bool, error) {
		if expired || before == 0 {
			text := "it is copied and answered for"
			if z.policy != nil {
				text = "its names are copied"
			}
			if expired {
				text = "the primary server answers again"
			}
			if err := z.addEvent(tx, "INFO", text); err != nil {
				return false, err
			}
		}
		return false, tx.Write("INSERT INTO dns_copy (zone, configuration, refreshed, expired, notified) VALUES (?, ?, ?, 0, 0)"+
			" ON CONFLICT (zone) DO UPDATE SET refreshed = excluded.refreshed, expired = 0", z.id, z.configuration, tx.Now().UnixMilli())
	})
}

// expire stops the answers for a zone that could not be checked within its expire time (RFC 1035 section 3.3.13), and adds events about it.
func (c *Copier) expire(ctx context.Context, z *copiedZone, soa *wire.SOA, why error, isReported bool) error {
	if soa == nil && isReported {
		return nil
	}
	return c.commit(ctx, z, nil, func(tx *store.Tx, refreshed int64, expired bool) (bool, error) {
		if refreshed == 0 && !isReported {
			if err := z.addEvent(tx, "WARNING", "the first copy failed: "+firstLine(why)); err != nil {
				return true, err
			}
		}
		if soa == nil {
			return expired || refreshed == 0, nil
		}
		if expired || refreshed == 0 {
			return true, nil
		}
		if tx.Now().Sub(time.UnixMilli(refreshed)) < time.Duration(soa.Expire)*time.Second {
			if isReported {
				return false, nil
			}
			return false, z.addEvent(tx, "WARNING", "the refresh failed, the old copy is still served: "+firstLine(why))
		}
		if err := z.addEvent(tx, "ERROR", "the copy has expired and is not served: "+firstLine(why)); err != nil {
			return true, err
		}
		return true, tx.Write("UPDATE dns_copy SET expired = 1 WHERE zone = ?", z.id)
	})
}

// errConcurrentDeployment reports that the deployed content of a zone changed during a check.
var errConcurrentDeployment = problem.New(503, "ZoneDeployedMeanwhile", "the zone was deployed again meanwhile: retrying")

// addEvent adds an event about a zone.
func (z *copiedZone) addEvent(tx *store.Tx, kind, text string) error {
	return event.Add(tx, event.Event{EventType: kind, Category: "DEPLOYMENT", Subcategory: serverconfig.ServiceDNS, SourceName: z.name,
		Message: fmt.Sprintf("Zone %s copied from external servers: %s", z.name, text)}, z.configuration)
}

// commit publishes the content of a zone, and whether servers answer for it: note stores the result of the check and reports whether the
// zone is void, so that servers do not answer.
func (c *Copier) commit(ctx context.Context, z *copiedZone, p *publication,
	note func(tx *store.Tx, refreshed int64, expired bool) (bool, error),
) error {
	var toWake []string
	err := c.lease.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		toWake = nil
		refreshed, expired, err := readCopy(tx, z.id)
		if err != nil {
			return err
		}
		void, err := note(tx, refreshed, expired)
		if err != nil {
			return err
		}
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		var changed []int64
		if p != nil && (!p.existed || len(p.removed)+len(p.added) > 0) {
			if changed, err = publish(tx, z.configuration, number, []*publication{p}, readTime{}); err != nil {
				return err
			}
			if err := (frame{}).write(tx, z.id); err != nil {
				return err
			}
		}
		also, err := setVoid(tx, c.api.Sealer, z.id, number, void)
		if err != nil {
			return err
		}
		changed = append(changed, also...)
		slices.Sort(changed)
		toWake, err = markServersChanged(tx, c.api, c.points, slices.Compact(changed))
		return err
	})
	if err == nil {
		for _, point := range toWake {
			c.points.Wake(point)
		}
	}
	return err
}

// setVoid sets whether the servers of a zone refuse to answer for it, and returns the servers whose settings changed.
func setVoid(tx *store.Tx, sealer resource.Sealer, zone string, number int64, void bool) (changed []int64, err error) {
	var servers []int64
	if err := tx.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		servers = append(servers, id)
		return err
	}, "SELECT server FROM dns_served WHERE zone = ?", zone); err != nil {
		return nil, err
	}
	for _, server := range servers {
		settings, err := settingsOf(tx, sealer, server)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(settings.Zones, func(z zonedata.Zone) bool { return z.ID == zone })
		if i < 0 || settings.Zones[i].Void == void {
			continue
		}
		settings.Zones[i].Void = void
		text, err := json.Marshal(settings)
		if err != nil {
			return nil, err
		}
		if err := replaceSettings(tx, sealer, server, number, string(text)); err != nil {
			return nil, err
		}
		changed = append(changed, server)
	}
	return changed, nil
}

// recordNotify records a NOTIFY message for a copied zone (RFC 1996).
func recordNotify(ctx context.Context, a *resource.API, u *Update) (code int, why string) {
	zone, known := "", 0
	err := a.Store.View(ctx, func(tx *store.Tx) error {
		settings, _, err := servedBy(tx, a, u.ServicePoint)
		if err != nil {
			return err
		}
		for _, z := range settings.Zones {
			if z.View == u.View && z.Name == u.Zone && slices.Contains(z.Primaries, u.Client) {
				zone = z.ID
				return tx.QueryRow("SELECT count(*) FROM dns_copy WHERE zone = ? AND notified = 1", zone).Scan(&known)
			}
		}
		return &transfer.Refused{Code: wire.RcodeRefused, Why: "it is not a primary server of the zone"}
	})
	if err == nil && known == 0 { // several messages can announce one change
		err = a.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
			tx.Touch(copiesTopic)
			return tx.Write("UPDATE dns_copy SET notified = 1 WHERE zone = ?", zone)
		})
	}
	if err != nil {
		code, why = transfer.CodeOf(err)
	}
	return code, why
}
