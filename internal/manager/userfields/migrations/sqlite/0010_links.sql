-- User-defined links in the shape of resources, as they are seen from either end: the number is that of the resource at the other end, the
-- parent the one at this end.
CREATE VIEW user_link_resource AS
    SELECT o.id, 'userDefinedLinks' AS collection, 'UserDefinedLinkedResource' AS type, o.name, here.target AS parent, o.configuration,
           NULL AS low, NULL AS high, NULL AS key, l.version, 'linkDefinition:' || d.target AS refs, l.body
    FROM reference here
    JOIN resource l ON l.id = here.source AND l.collection = 'userLinks'
    JOIN reference there ON there.source = l.id AND there.field = CASE here.field WHEN 'source' THEN 'destination' ELSE 'source' END
    JOIN resource o ON o.id = there.target
    JOIN reference d ON d.source = l.id AND d.field = 'linkDefinition'
    WHERE here.field IN ('source', 'destination');
