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

// registerDatabases declares the collection with the one database of the manager, and the collections for replication. Replication is done
// by PostgreSQL, so requests to configure it here are rejected.
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

// databaseName is the name of the database resource.
const databaseName = "portolan"

// AddressManagerDatabase is the database of the manager.
type AddressManagerDatabase struct {
	schema.Head `head:"readOnly" post:"no"`
	// State is the replication state; the database is always STANDALONE.
	State string `api:"state,notNull" enum:"STANDALONE|REPLICATED|BREAK" default:"STANDALONE"`
	// EntityCount is the number of resources in the database.
	EntityCount *int64 `api:"entityCount,computed"`
	// Size is the size of the database, in bytes.
	Size *int64 `api:"size,computed"`
	// LastBackupDateTime is the time of the newest backup made by the manager. Backups made on the command line are not recorded.
	LastBackupDateTime time.Time `api:"lastBackupDateTime,readOnly,computed"`
	// ActiveSessions is the number of open sessions.
	ActiveSessions *int64 `api:"activeSessions,computed"`
	// ActiveSessionCount is the number of open sessions, under the name that release 9.6 uses.
	ActiveSessionCount *int64 `api:"activeSessionCount,computed"`
	// BackupEnabled reports whether backups can be made: the manager must have a backup directory.
	BackupEnabled *bool `api:"backupEnabled,computed"`
	// ReplicationEnabled controls whether the manager replicates the database; true is rejected.
	ReplicationEnabled bool `api:"replicationEnabled,put"`
	// ReplicationRole is the role of the database in replication.
	ReplicationRole string `api:"replicationRole,readOnly" enum:"STANDALONE|PRIMARY|STANDBY|REMOVED_STANDBY" default:"STANDALONE"`
	// ReplicationStatus is the progress of replication.
	ReplicationStatus string `api:"replicationStatus,readOnly" enum:"ENROLLING|FAILINGOVER|BREAKING|RESETTING|INITIALIZING|REPLICATING|NOT_REPLICATING|PENDING|UNAVAILABLE|REMOVED_STANDBY|INITIALIZING_FAILOVER" default:"NOT_REPLICATING"`
	// CompressionEnabled controls whether replicated data is compressed.
	CompressionEnabled *bool `api:"compressionEnabled"`
	// LatencyWarningThreshold is the replication delay above which a warning is raised.
	LatencyWarningThreshold string `api:"latencyWarningThreshold,duration"`
	// LatencyCriticalThreshold is the replication delay above which a failure is raised.
	LatencyCriticalThreshold string `api:"latencyCriticalThreshold,duration"`
	// Servers are the machines to replicate to.
	Servers schema.RefList `api:"servers,writeOnly" min:"1"`
}

// AddressManagerServer is a machine to replicate the database to.
type AddressManagerServer struct {
	schema.Head `head:"readOnly" parents:"databases"`
	// Address is the address of the machine.
	Address string `api:"address,post"`
	// State is the role of the machine in replication.
	State string `api:"state" enum:"STANDALONE|PRIMARY|STANDBY" default:"STANDBY"`
	// ReplicationStatus is the progress of replication to the machine.
	ReplicationStatus string `api:"replicationStatus,readOnly" enum:"DISABLED|ENROLLING|FAILINGOVER|BREAKING|RESETTING|ENABLED|INITIALIZING|REPLICATING|NOTREPLICATING|PENDING|UNAVAILABLE|REMOVEDSTANDBY|INITIALIZINGFAILOVER"`
	// EnrollmentPercentComplete is the progress of enrollment, in percent.
	EnrollmentPercentComplete *int64 `api:"enrollmentPercentComplete,readOnly"`
	// ReplicationLatency is the replication delay of the machine.
	ReplicationLatency string `api:"replicationLatency,readOnly"`
}

// TrustRelationship is the trust in another manager that the database is replicated to.
type TrustRelationship struct {
	schema.Head `head:"readOnly"`
	// Address is the address of the other manager.
	Address string `api:"address,post"`
	// Username is the user name for the other manager.
	Username string `api:"username,post,writeOnly,nonblank"`
	// Password is the password of that user.
	Password string `api:"password,post,writeOnly,nonblank"`
	// KeyGenerationDateTime is the time when the keys were generated.
	KeyGenerationDateTime time.Time `api:"keyGenerationDateTime,readOnly"`
	// State is the state of the trust.
	State string `api:"state" enum:"TRUSTED|UNTRUSTED|REFRESH_KEYS"`
}

// replicationRejected returns the error for requests to configure replication.
func replicationRejected() error {
	return problem.BadRequest("ReplicationOperationNotAllowed",
		"the manager does not replicate its database: use PostgreSQL with a standby server")
}

// BeforeWrite rejects replication settings and a change of backupEnabled.
func (x *AddressManagerDatabase) BeforeWrite(c *resource.Change) error {
	if raw, given := c.Sent["backupEnabled"]; given &&
		string(raw) != strconv.FormatBool(resource.Provided[Options](c.API.Provisions).Backups) {
		return problem.Field("UnsupportedResourceFieldValue", "backupEnabled", "is set by the flags --data and --backup-dir at start")
	}
	if x.ReplicationEnabled || len(x.Servers.Items) > 0 {
		return replicationRejected()
	}
	if x.State != "STANDALONE" {
		return problem.Field("DatabaseNotInReplicatedState", "state", "the database is STANDALONE and has no replicas to leave")
	}
	for field, given := range map[string]bool{"compressionEnabled": x.CompressionEnabled != nil && *x.CompressionEnabled,
		"latencyWarningThreshold": x.LatencyWarningThreshold != "", "latencyCriticalThreshold": x.LatencyCriticalThreshold != ""} {
		if given && c.SetFields[field] {
			return problem.Field("ReplicationOperationNotAllowed", field, "is only supported for a replicated database")
		}
	}
	return nil
}

// BeforeWrite rejects the server, because the manager does not replicate its database.
func (x *AddressManagerServer) BeforeWrite(*resource.Change) error { return replicationRejected() }

// BeforeWrite rejects the relationship, because the manager does not replicate its database.
func (x *TrustRelationship) BeforeWrite(*resource.Change) error { return replicationRejected() }

// completeDatabase fills in the computed fields: sizes, counts, open sessions and the last backup.
func completeDatabase(tx *store.Tx, m Options, rows []*store.Resource) error {
	for _, r := range rows {
		entities, size, err := tx.Extent()
		if err != nil {
			return fmt.Errorf("read the size of the database: %w", err)
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

// openSessions returns the number of open sessions.
func openSessions(tx *store.Tx) (int64, error) {
	return tx.Count(store.Query{From: store.Resources, Where: store.All{store.InCollection("sessions"),
		store.Compare{Field: store.Field{Kind: store.Text, Path: []string{"state"}}, Op: "eq", Value: "LOGGED_IN"}}})
}
