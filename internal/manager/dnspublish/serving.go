package dnspublish

import (
	"fmt"
	"slices"

	"portolan/internal/base/naming"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/store"
	"portolan/internal/manager/serverconfig"
	"portolan/internal/wire/zonedata"
)

// zoneServing is the deployed state of a zone, and the servers that serve it.
type zoneServing struct {
	// Serial is the deployed serial number; null where the zone is not deployed. Records is the number of records, including SOA and NS.
	// Records is null also where the caller cannot see all data of the zone.
	Serial  *uint32 `json:"serial"`
	Records *int64  `json:"records"`
	// Servers are the servers that the zone is deployed to and that the caller can see.
	Servers []zoneServer `json:"servers"`
}

// zoneServer is a server that a zone is deployed to.
type zoneServer struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	Name string `json:"name"`
	// Current reports whether the server has confirmed that it serves the serial number, Connected whether it is connected.
	Current   bool `json:"current"`
	Connected bool `json:"connected"`
}

// Options connect this package to the fleet.
type Options struct {
	// Serving returns the content that a service point has confirmed (Serving.Content), and whether it is connected.
	Serving func(tx *store.Tx, servicePoint string) (content string, connected bool, err error)
	// Services are the services other than DNS, by the values of the field service.
	Services map[string]Service
}

// servingReport declares the report on the servers that serve a zone.
func servingReport() resource.Report {
	return resource.Report{Name: "serving", Summary: "The deployed state of a zone, and the servers that answer for it", Answer: zoneServing{},
		Description: "The serial number, and for each server whether it has confirmed that it serves this number.",
		Of: func(tx *store.Tx, a *resource.API, caller resource.Caller, of *store.Resource) (any, error) {
			answer, serving := zoneServing{Servers: []zoneServer{}}, resource.Provided[Options](a.Provisions).Serving
			id := zoneID(of.Ref("view"), of.Key)
			z, there, err := readDeployed(tx, id)
			if err != nil || !there {
				return answer, err
			}
			serial := uint32(z.serial) //nolint:gosec // of 32 bits
			answer.Serial = &serial
			switch all, err := seesData(tx, caller, of); {
			case err != nil:
				return nil, err
			case all:
				answer.Records = &z.records
			}
			since, ids := map[int64]int64{}, []int64{}
			if err := tx.Each(func(scan func(...any) error) error {
				var server, number int64
				if err := scan(&server, &number); err != nil {
					return err
				}
				since[server], ids = number, append(ids, server)
				return nil
			}, "SELECT server, number FROM dns_served WHERE zone = ?", id); err != nil {
				return nil, fmt.Errorf("read the servers of a zone: %w", err)
			}
			seen, err := a.VisibleResources(tx, caller, ids)
			if err != nil {
				return nil, err
			}
			slices.Sort(ids)
			for _, server := range ids {
				row := seen[server]
				if row == nil {
					continue
				}
				one := zoneServer{ID: row.ID, Type: row.Type, Name: row.Name}
				o, err := a.Object(row)
				if err != nil {
					return nil, err
				}
				if fields := serverconfig.FieldsOf(o); fields != nil && fields.ServicePoint != "" && serving != nil {
					content, connected, err := serving(tx, fields.ServicePoint)
					if err != nil {
						return nil, err
					}
					one.Connected = connected
					if serves, wrong := zonedata.ParseRevision(content); wrong == nil {
						one.Current = serves.Number >= max(z.number, since[server])
					}
				}
				answer.Servers = append(answer.Servers, one)
			}
			return answer, nil
		}}
}

// seesData reports whether a caller can see all resources that the data of a zone comes from. These are the resources below the zone or,
// for a reverse zone, the whole configuration.
func seesData(tx *store.Tx, caller resource.Caller, zone *store.Resource) (bool, error) {
	if !caller.Limited() {
		return true, nil
	}
	of := zone.ID
	if _, _, reverse := naming.ReverseRange(zone.Key); reverse {
		of = zone.Configuration
	}
	h, err := tx.Head(of)
	if err != nil {
		return false, err
	}
	seen, err := caller.Rights.Sees(tx, []store.Head{h})
	if err != nil || !seen[of] {
		return false, err
	}
	whole, err := caller.Rights.Whole(tx, []int64{of})
	return whole[of], err
}
