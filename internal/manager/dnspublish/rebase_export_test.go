package dnspublish

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	wire "portolan/internal/base/dnsmsg"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/wire/zonedata"
)

// PublishOver publishes a TXT record of the only zone of a configuration by a deployment whose snapshot precedes the deployments that later
// waits for. known reports that their snapshots are known to be later. It returns the number of queue entries that the deployment leaves,
// by lane, and whether the record is deployed.
func PublishOver(ctx context.Context, api *resource.API, configuration int64, name string, known bool, later func()) (
	lanes map[int]int, deployed bool, err error,
) {
	times := &contentTimes{}
	read := times.beginRead()
	var c *publication
	if err := api.Store.View(ctx, func(tx *store.Tx) error {
		p, err := newPlan(tx, api, configuration)
		if err != nil {
			return err
		}
		z := p.zones[0]
		is, there, err := readDeployed(tx, z.id)
		if err == nil && !there {
			err = errors.New("the zone is not deployed")
		}
		if err != nil {
			return err
		}
		read.endRead()
		after, err := entriesOfRecords([]wire.RR{&wire.TXT{Hdr: wire.RR_Header{Name: name + "." + z.fqdn(), Rrtype: wire.TypeTXT,
			Class: wire.ClassINET, Ttl: 60}, Txt: []string{"published"}}})
		if err != nil {
			return err
		}
		c, err = p.changeOf(z, is, nil, after, time.Now())
		return err
	}); err != nil {
		return nil, false, err
	}
	c.rebases = true
	later()
	lanes = map[int]int{}
	return lanes, deployed, api.Store.Update(ctx, store.Author{}, func(tx *store.Tx) error {
		clear(lanes)
		if known {
			if err := tx.Each(func(scan func(...any) error) error {
				var number int64
				var hash string
				err := scan(&number, &hash)
				times.record(number, hash, time.Now())
				return err
			}, "SELECT number, to_hash FROM dns_difference WHERE zone = ?", c.zone.id); err != nil {
				return err
			}
		}
		number, err := nextNumber(tx)
		if err != nil {
			return err
		}
		if _, err := publish(tx, configuration, number, []*publication{c}, read); err != nil {
			return err
		}
		owner := names{}
		if err := owner.add(name + "." + c.zone.fqdn()); err != nil {
			return err
		}
		found, err := deployedOf(tx, c.zone.id, owner)
		if err != nil {
			return err
		}
		deployed = slices.ContainsFunc(found, func(e zonedata.Entry) bool { return bytes.Contains(e.Record(), []byte("published")) })
		return tx.Each(func(scan func(...any) error) error {
			var lane, n int
			err := scan(&lane, &n)
			lanes[lane] = n
			return err
		}, "SELECT lane, count(*) FROM dns_due GROUP BY lane")
	})
}
