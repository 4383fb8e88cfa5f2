package settings

import (
	"fmt"
	"strconv"
	"time"

	"portolan/internal/base/problem"
	"portolan/internal/engine/resource"
	"portolan/internal/engine/schema"
	"portolan/internal/engine/store"
)

// registerDatabases declares the collection with the one database of the manager, and those of what it would be copied by: that is the
// affair of PostgreSQL, and refused here.
func registerDatabases(r *resource.Registry) {
	r.Collection(resource.Collection{Name: "databases", Parents: []string{""}, Guard: resource.Administration, NoSearch: true,
		Complete: func(tx *store.Tx, rows []*store.Resource) error {
			return completeDatabase(tx, resource.Provided[Options](r.Provisions()), rows)
		}}, &AddressManagerDatabase{})
	r.Collection(resource.Collection{Name: "databaseServers", Called: "servers", Guard: resource.Administration, NoSearch: true},
		&AddressManagerServer{})
	r.Collection(resource.Collection{Name: "trustRelationships", Parents: []string{""}, Guard: resource.Administration, NoSearch: true},
		&TrustRelationship{})
	r.Seed(func(c *resource.Change) error {
		found, err := c.Tx.ByName("databases", 0, databaseName)
		if err != nil || len(found) > 0 {
			return err
		}
		t := c.API.TypeNamed("AddressManagerDatabase")
		o := t.New()
		schema.HeadOf(o).Name = databaseName
		_, err = c.Following().Create(t, o)
		return err
	})
}

// databaseName is the name of the database.
const databaseName = "portolan"

// AddressManagerDatabase is the database of the manager.
type AddressManagerDatabase struct {
	schema.Head `head:"readOnly" post:"no"`
	// State is whether it is one of several.
	State string `api:"state,notNull" enum:"STANDALONE|REPLICATED|BREAK" default:"STANDALONE"`
	// EntityCount is how many resources it holds.
	EntityCount *int64 `api:"entityCount,computed"`
	// Size is how large it is, in bytes.
	Size *int64 `api:"size,computed"`
	// LastBackupDateTime is when the newest of the backups was made that the manager has made; those of the command line are not noted.
	LastBackupDateTime time.Time `api:"lastBackupDateTime,readOnly,computed"`
	// ActiveSessions is how many sessions are open.
	ActiveSessions *int64 `api:"activeSessions,computed"`
	// ActiveSessionCount is the same, as release 9.6 calls it.
	ActiveSessionCount *int64 `api:"activeSessionCount,computed"`
	// BackupEnabled says whether backups may be made: where the manager has a directory for them.
	BackupEnabled *bool `api:"backupEnabled,computed"`
	// ReplicationEnabled says whether it is copied by the manager.
	ReplicationEnabled bool `api:"replicationEnabled,put"`
	// ReplicationRole is what it is among the copies.
	ReplicationRole string `api:"replicationRole,readOnly" enum:"STANDALONE|PRIMARY|STANDBY|REMOVED_STANDBY" default:"STANDALONE"`
	// ReplicationStatus is how the copying goes.
	ReplicationStatus string `api:"replicationStatus,readOnly" enum:"ENROLLING|FAILINGOVER|BREAKING|RESETTING|INITIALIZING|REPLICATING|NOT_REPLICATING|PENDING|UNAVAILABLE|REMOVED_STANDBY|INITIALIZING_FAILOVER" default:"NOT_REPLICATING"`
	// CompressionEnabled says whether what is copied is compressed.
	CompressionEnabled *bool `api:"compressionEnabled"`
	// LatencyWarningThreshold is how late a copy may be before somebody is warned.
	LatencyWarningThreshold string `api:"latencyWarningThreshold,duration"`
	// LatencyCriticalThreshold is how late it may be before that is a failure.
	LatencyCriticalThreshold string `api:"latencyCriticalThreshold,duration"`
	// Servers are the machines that it is copied to.
	Servers schema.RefList `api:"servers,writeOnly" min:"1"`
}

// AddressManagerServer is a machine that the database is copied to.
type AddressManagerServer struct {
	schema.Head `head:"readOnly" parents:"databases"`
	// Address is where it is.
	Address string `api:"address,post"`
	// State is what it is among the copies.
	State string `api:"state" enum:"STANDALONE|PRIMARY|STANDBY" default:"STANDBY"`
	// ReplicationStatus is how the copying goes.
	ReplicationStatus string `api:"replicationStatus,readOnly" enum:"DISABLED|ENROLLING|FAILINGOVER|BREAKING|RESETTING|ENABLED|INITIALIZING|REPLICATING|NOTREPLICATING|PENDING|UNAVAILABLE|REMOVEDSTANDBY|INITIALIZINGFAILOVER"`
	// EnrollmentPercentComplete is how far it is.
	EnrollmentPercentComplete *int64 `api:"enrollmentPercentComplete,readOnly"`
	// ReplicationLatency is how late it is.
	ReplicationLatency string `api:"replicationLatency,readOnly"`
}

// TrustRelationship is the trust in another manager, which a database is copied to.
type TrustRelationship struct {
	schema.Head `head:"readOnly"`
	// Address is where it is.
	Address string `api:"address,post"`
	// Username is who signs in there.
	Username string `api:"username,post,writeOnly,nonblank"`
	// Password is the password for it.
	Password string `api:"password,post,writeOnly,nonblank"`
	// KeyGenerationDateTime is when the keys were made.
	KeyGenerationDateTime time.Time `api:"keyGenerationDateTime,readOnly"`
	// State is whether it is trusted.
	State string `api:"state" enum:"TRUSTED|UNTRUSTED|REFRESH_KEYS"`
}

// notCopied refuses what would copy the database.
func notCopied() error {
	return problem.BadRequest("ReplicationOperationNotAllowed",
		"the manager does not copy its database: for that, run it on PostgreSQL with a standby")
}

// BeforeWrite refuses to copy the database.
func (x *AddressManagerDatabase) BeforeWrite(c *resource.Change) error {
	if raw, given := c.Sent["backupEnabled"]; given &&
		string(raw) != strconv.FormatBool(resource.Provided[Options](c.API.Provisions).Backups) {
		return problem.Field("UnsupportedResourceFieldValue", "backupEnabled", "follows from how the manager was started (--data, --backup-dir)")
	}
	if x.ReplicationEnabled || len(x.Servers.Items) > 0 {
		return notCopied()
	}
	if x.State != "STANDALONE" {
		return problem.Field("DatabaseNotInReplicatedState", "state", "the database is STANDALONE, and has no copies to leave")
	}
	for field, given := range map[string]bool{"compressionEnabled": x.CompressionEnabled != nil && *x.CompressionEnabled,
		"latencyWarningThreshold": x.LatencyWarningThreshold != "", "latencyCriticalThreshold": x.LatencyCriticalThreshold != ""} {
		if given && c.Given[field] {
			return problem.Field("ReplicationOperationNotAllowed", field, "is for a database that is copied")
		}
	}
	return nil
}

// BeforeWrite refuses to copy the database.
func (x *AddressManagerServer) BeforeWrite(*resource.Change) error { return notCopied() }

// BeforeWrite refuses to copy the database.
func (x *TrustRelationship) BeforeWrite(*resource.Change) error { return notCopied() }

// completeDatabase counts what the database holds.
func completeDatabase(tx *store.Tx, m Options, rows []*store.Resource) error {
	for _, r := range rows {
		entities, size, err := tx.Extent()
		if err != nil {
			return fmt.Errorf("how much the database holds: %w", err)
		}
		open, err := openSessions(tx)
		if err != nil {
			return err
		}
		var at time.Time
		if m.LastBackup != nil {
			if at, err = m.LastBackup(tx); err != nil {
				return err
			}
		}
		last := []byte("null")
		if !at.IsZero() {
			last = []byte(strconv.Quote(at.Format(time.RFC3339)))
		}
		if r.Body, err = store.Rewritten(r.Body, map[string][]byte{"lastBackupDateTime": last,
			"entityCount": strconv.AppendInt(nil, entities, 10),
			"size":        strconv.AppendInt(nil, size, 10), "activeSessions": strconv.AppendInt(nil, open, 10),
			"activeSessionCount": strconv.AppendInt(nil, open, 10), "backupEnabled": strconv.AppendBool(nil, m.Backups)}); err != nil {
			return err
		}
	}
	return nil
}

// openSessions counts the sessions that are open.
func openSessions(tx *store.Tx) (int64, error) {
	return tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("sessions"),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: "LOGGED_IN"}}})
}
