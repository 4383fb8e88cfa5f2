package zonedata

// MostIterations is how many further rounds of hashing names a zone that comes with its signatures may ask for: each question for a name
// that is not there costs three times as many (RFC 9276 section 3.2 lets validators refuse such zones).
const MostIterations = 500
