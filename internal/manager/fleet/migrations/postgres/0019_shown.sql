-- The schema of sqlite/0019_shown.sql in PostgreSQL's words.
DROP TRIGGER service_point_revised ON service_point;
CREATE TRIGGER service_point_revised BEFORE UPDATE ON service_point FOR EACH ROW WHEN (new.revision = old.revision
    AND (new.name, new.description, new.status, new.update_status, new.version, new.target_version, new.update_reason)
        IS DISTINCT FROM (old.name, old.description, old.status, old.update_status, old.version, old.target_version, old.update_reason))
    EXECUTE FUNCTION service_point_revised();
CREATE OR REPLACE FUNCTION of_service_point_revised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE service_point SET revision = revision + 1 WHERE id = coalesce(new.service_point, old.service_point);
    RETURN NULL;
END $$;
DROP TRIGGER report_revised ON report;
CREATE TRIGGER report_revised AFTER INSERT OR DELETE ON report
    FOR EACH ROW EXECUTE FUNCTION of_service_point_revised();
CREATE TRIGGER report_update_revised AFTER UPDATE ON report FOR EACH ROW WHEN (new.body <> old.body)
    EXECUTE FUNCTION of_service_point_revised();
CREATE TABLE fleet_change (n BIGINT NOT NULL);
INSERT INTO fleet_change (n) VALUES (0);
