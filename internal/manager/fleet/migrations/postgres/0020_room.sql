-- The schema of sqlite/0020_room.sql in PostgreSQL's words.
CREATE INDEX application_status ON application (status, service_point);
-- An order writes every service point that it is for. A page has room for all of its rows once more, and no index is of what an order changes:
-- then the indexes of a row stay as they are (PostgreSQL's README.HOT), which makes an order a fifth to a third shorter (docs/decisions.md).
-- SQLite writes the indexes of what has changed alone. Who asks for an updateStatus has the rows read.
DROP INDEX service_point_update;
ALTER TABLE service_point SET (fillfactor = 45);
CLUSTER service_point USING service_point_pkey;
-- Each report comes once more: what earlier versions did not take over of it is taken over then.
UPDATE report SET digest = '';
UPDATE node SET digest = '';
