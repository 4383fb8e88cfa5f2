-- The oldest difference of a zone is its base (publication.writeDifference). Those of earlier releases have none: service points get whole
-- zones instead of them.
DELETE FROM dns_difference;
