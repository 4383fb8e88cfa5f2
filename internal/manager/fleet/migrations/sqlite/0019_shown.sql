-- The revision is raised where something that lists show is another one than before, or a report is. A statement that raises it itself
-- saves the trigger's: the row is written once then. TestRevisionOfEveryColumn finds a column that is shown and is not named here.
DROP TRIGGER service_point_revised;
CREATE TRIGGER service_point_revised AFTER UPDATE ON service_point WHEN new.revision = old.revision
    AND (new.name, new.description, new.status, new.update_status, new.version, new.target_version, new.update_reason)
        IS NOT (old.name, old.description, old.status, old.update_status, old.version, old.target_version, old.update_reason)
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.id; END;
DROP TRIGGER report_update_revised;
CREATE TRIGGER report_update_revised AFTER UPDATE ON report WHEN new.body <> old.body
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
-- How often what somebody asked for has changed the fleet, where several managers do: by that each knows whether what it found is still so.
CREATE TABLE fleet_change (n INTEGER NOT NULL);
INSERT INTO fleet_change (n) VALUES (0);
