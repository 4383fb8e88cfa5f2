-- The schema of sqlite/0018_revision.sql in PostgreSQL's words.
ALTER TABLE service_point ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
CREATE FUNCTION service_point_revised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    new.revision := old.revision + 1;
    RETURN new;
END $$;
CREATE TRIGGER service_point_revised BEFORE UPDATE ON service_point FOR EACH ROW EXECUTE FUNCTION service_point_revised();
CREATE FUNCTION of_service_point_revised() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE service_point SET revision = revision WHERE id = coalesce(new.service_point, old.service_point);
    RETURN NULL;
END $$;
CREATE TRIGGER report_revised AFTER INSERT OR UPDATE OR DELETE ON report
    FOR EACH ROW EXECUTE FUNCTION of_service_point_revised();
CREATE TRIGGER label_revised AFTER INSERT OR UPDATE OR DELETE ON label
    FOR EACH ROW EXECUTE FUNCTION of_service_point_revised();
CREATE TRIGGER application_revised AFTER INSERT OR UPDATE OR DELETE ON application
    FOR EACH ROW EXECUTE FUNCTION of_service_point_revised();
