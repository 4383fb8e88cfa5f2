-- Service points are found by how their applications are.
CREATE INDEX application_status ON application (status, service_point);
