package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"portolan/internal/engine/store"
	"portolan/internal/manager/dhcp"
	"portolan/internal/manager/ipam"
)

// DHCPStatus is the state of leases and DHCP ranges.
type DHCPStatus struct {
	// Leases are the numbers of leases by server and state.
	Leases map[string]map[string]int64 `json:"leases"`
	// Partners are the numbers of servers in failover pairs, by the state that they report.
	Partners map[string]int64 `json:"partners"`
	// NearlyFull is the number of ranges of which at least the mark of SpaceStatus is leased or abandoned. Filling is the number of listed
	// ranges that are full within fillingTime.
	NearlyFull int64 `json:"nearlyFull"`
	Filling    int64 `json:"filling"`
	// Ranges lists up to maxFullest ranges with leases, the fullest first.
	Ranges []FullRange `json:"ranges"`
}

// FullRange is a DHCP range with leases.
type FullRange struct {
	Configuration string `json:"configuration"`
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	Range         string `json:"range"`
	// Used is the part of the range in use, from 0 to 1. FullInHours is the forecast; null without one.
	Used        float64  `json:"used"`
	FullInHours *float64 `json:"fullInHours"`
}

// fillingTime is the time within which a range that will be full is an alarm.
const fillingTime = 24 * time.Hour

// maxExamined is the maximum number of ranges whose utilization and forecast are computed for the status: those with the largest share of
// leases.
const maxExamined = 200

// readDHCP finds the numbers of leases by server, and the fullest ranges. mark is the percentage from which a range is nearly full.
func readDHCP(tx *store.Tx, mark int) (s DHCPStatus, err error) {
	s = DHCPStatus{Leases: map[string]map[string]int64{}, Ranges: []FullRange{}}
	servers, err := dhcp.CountServers(tx)
	if err != nil {
		return s, err
	}
	for id, states := range servers {
		row, err := tx.Head(id)
		if err != nil {
			return s, fmt.Errorf("read server %d: %w", id, err)
		}
		s.Leases[row.Name] = states
	}
	if s.Partners, err = dhcp.CountPartners(tx); err != nil {
		return s, fmt.Errorf("count failover partners: %w", err)
	}
	ranges, err := dhcp.LeasedRanges(tx)
	if err != nil {
		return s, err
	}
	for _, r := range ranges {
		if r.Share() >= float64(mark)/100 {
			s.NearlyFull++
		}
	}
	slices.SortStableFunc(ranges, func(a, b dhcp.LeasedRange) int { return cmp.Compare(b.Share(), a.Share()) })
	ids := []int64{}
	for _, r := range ranges[:min(len(ranges), maxExamined)] {
		ids = append(ids, r.ID)
	}
	all, err := ipam.UtilizationOf(tx, ids)
	if err != nil {
		return s, err
	}
	for _, one := range all {
		full := FullRange{ID: one.ID, Name: one.Name, Range: one.Range, FullInHours: one.FullInHours}
		if one.Addresses != nil && *one.Addresses > 0 && one.Free != nil {
			full.Used = 1 - float64(*one.Free)/float64(*one.Addresses)
		}
		if one.FullInHours != nil && *one.FullInHours < fillingTime.Hours() {
			s.Filling++
		}
		configuration, err := tx.Head(one.Configuration)
		if err != nil {
			return s, err
		}
		full.Configuration = configuration.Name
		s.Ranges = append(s.Ranges, full)
	}
	slices.SortStableFunc(s.Ranges, func(a, b FullRange) int { return cmp.Compare(b.Used, a.Used) })
	s.Ranges = s.Ranges[:min(len(s.Ranges), maxFullest)]
	return s, nil
}

// dhcpFigureHelp describes the figures of DHCP, as figureHelp does.
var dhcpFigureHelp = []figure{
	{"portolan_dhcp_leases", "Leases of DHCP servers, by server and state.", []string{"server", "state"}},
	{"portolan_dhcp_leases_all", "Leases of all DHCP servers, by state.", []string{"state"}},
	{"portolan_dhcp_partners_all", "Servers in failover pairs, by the state that they report.", []string{"state"}},
	{"portolan_dhcp_ranges_nearly_full_all", "DHCP ranges of which --nearly-full or more is leased.", nil},
	{"portolan_dhcp_ranges_filling_all", "DHCP ranges that are full within a day, if their leases go on as in the last 24 hours.", nil},
	{"portolan_dhcp_range_used_ratio", "Share of used addresses of the fullest DHCP ranges, 0 to 1; at most twenty ranges.",
		[]string{"configuration", "range"}},
	{"portolan_dhcp_range_full_hours", "In how many hours one of those ranges is full; missing without a forecast.",
		[]string{"configuration", "range"}},
}

// collect sends the figures of DHCP.
func (s DHCPStatus) collect(give func(name string, value float64, labels ...string)) {
	sums := map[string]int64{}
	for server, states := range s.Leases {
		for state, n := range states {
			sums[state] += n
			give("portolan_dhcp_leases", float64(n), server, state)
		}
	}
	for state, n := range sums {
		give("portolan_dhcp_leases_all", float64(n), state)
	}
	for state, n := range s.Partners {
		give("portolan_dhcp_partners_all", float64(n), state)
	}
	give("portolan_dhcp_ranges_nearly_full_all", float64(s.NearlyFull))
	give("portolan_dhcp_ranges_filling_all", float64(s.Filling))
	for _, r := range s.Ranges {
		give("portolan_dhcp_range_used_ratio", r.Used, r.Configuration, r.Range)
		if r.FullInHours != nil {
			give("portolan_dhcp_range_full_hours", *r.FullInHours, r.Configuration, r.Range)
		}
	}
}
