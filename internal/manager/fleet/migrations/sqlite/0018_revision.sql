-- Raised whenever what lists show of a service point may have changed, its presence apart. Whoever writes these tables of several service
-- points does so in the order of their ids: their rows are locked by it.
ALTER TABLE service_point ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER service_point_revised AFTER UPDATE ON service_point WHEN new.revision = old.revision
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.id; END;
CREATE TRIGGER report_insert_revised AFTER INSERT ON report
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER report_update_revised AFTER UPDATE ON report
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER report_delete_revised AFTER DELETE ON report
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = old.service_point; END;
CREATE TRIGGER label_insert_revised AFTER INSERT ON label
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER label_update_revised AFTER UPDATE ON label
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER label_delete_revised AFTER DELETE ON label
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = old.service_point; END;
CREATE TRIGGER application_insert_revised AFTER INSERT ON application
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER application_update_revised AFTER UPDATE ON application
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = new.service_point; END;
CREATE TRIGGER application_delete_revised AFTER DELETE ON application
BEGIN UPDATE service_point SET revision = revision + 1 WHERE id = old.service_point; END;
