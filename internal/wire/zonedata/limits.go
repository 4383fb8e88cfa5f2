package zonedata

// MaxIterations is the maximum number of additional NSEC3 iterations of a zone that is transferred with its signatures. Each query for a
// name that does not exist costs three times as many (RFC 9276 section 3.2 allows validators to refuse such zones).
const MaxIterations = 500
