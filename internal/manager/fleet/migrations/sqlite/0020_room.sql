-- Service points are found by how their applications are.
CREATE INDEX application_status ON application (status, service_point);
-- Each report comes once more: what earlier versions did not take over of it is taken over then.
UPDATE report SET digest = '';
UPDATE node SET digest = '';
