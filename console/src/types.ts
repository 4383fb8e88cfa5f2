// Made from the schema of the API by go generate ./console. Do not edit.
import type { Links, Ref } from "./api"

/** ACL is an access control list of name servers: who may ask, transfer, notify or update. The first element that matches decides. */
export type ACL = {
  id: number
  type: "ACL"
  name: string | null
  _links?: Links
  configuration: Ref | null
  matchElements: any[]
  predefined: boolean
  userDefinedFields: any
}

/** AccessRight says what a user, or the members of a group, may see and change. */
export type AccessRight = {
  id: number
  type: "AccessRight"
  name: string | null
  _links?: Links
  accessOverrides: any[]
  defaultAccessLevel: "HIDE" | "VIEW" | "CHANGE" | "ADD" | "FULL"
  deploymentsAllowed: boolean
  quickDeploymentsAllowed: boolean
  resource: Ref | null
  selectiveDeploymentsAllowed: boolean
  userDefinedFields: any
  userScope: Ref
  workflowLevel: "NONE" | "RECOMMEND" | "APPROVE" | "DELETE"
}

/** AddressManagerAuthenticator is the one that is always there: the manager itself knows the passwords. */
export type AddressManagerAuthenticator = {
  id: number
  type: "AddressManagerAuthenticator"
  name: string | null
  _links?: Links
  hostname: string | null
  secondaryAuthenticator: Ref | null
  userDefinedFields: any
}

/** AddressManagerDatabase is the database of the manager. */
export type AddressManagerDatabase = {
  id: number
  type: "AddressManagerDatabase"
  name: string | null
  _links?: Links
  activeSessionCount: number | null
  activeSessions: number | null
  backupEnabled: boolean | null
  compressionEnabled: boolean | null
  entityCount: number | null
  lastBackupDateTime: string | null
  latencyCriticalThreshold: string | null
  latencyWarningThreshold: string | null
  replicationEnabled: boolean
  replicationRole: "STANDALONE" | "PRIMARY" | "STANDBY" | "REMOVED_STANDBY" | null
  replicationStatus: "ENROLLING" | "FAILINGOVER" | "BREAKING" | "RESETTING" | "INITIALIZING" | "REPLICATING" | "NOT_REPLICATING" | "PENDING" | "UNAVAILABLE" | "REMOVED_STANDBY" | "INITIALIZING_FAILOVER" | null
  servers?: any[] | null
  size: number | null
  state: "STANDALONE" | "REPLICATED" | "BREAK"
  userDefinedFields: any
}

/** AddressManagerServer is a machine that the database is copied to. */
export type AddressManagerServer = {
  id: number
  type: "AddressManagerServer"
  name: string | null
  _links?: Links
  address: string
  enrollmentPercentComplete: number | null
  replicationLatency: string | null
  replicationStatus: "DISABLED" | "ENROLLING" | "FAILINGOVER" | "BREAKING" | "RESETTING" | "ENABLED" | "INITIALIZING" | "REPLICATING" | "NOTREPLICATING" | "PENDING" | "UNAVAILABLE" | "REMOVEDSTANDBY" | "INITIALIZINGFAILOVER" | null
  state: "STANDALONE" | "PRIMARY" | "STANDBY" | null
  userDefinedFields: any
}

/** AdministrativeAccessRight says what a user, or the members of a group, may see of the manager itself. */
export type AdministrativeAccessRight = {
  id: number
  type: "AdministrativeAccessRight"
  name: string | null
  _links?: Links
  administrativeAccessRights: any[]
  userDefinedFields: any
  userScope: Ref
}

/** AliasRecord is another name for a record: a CNAME. */
export type AliasRecord = {
  id: number
  type: "AliasRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  linkedRecord: Ref
  recordType: string | null
  ttl: number | null
  userDefinedFields: any
}

/**  */
export type AnycastService = {
  id: number
  type: "AnycastService"
  name: string | null
  _links?: Links
  autonomousSystemNumber: number
  holdTimeInterval: number
  keepAliveInterval: number
  neighbors: any[]
  protocol: string
  routerId: string
}

/** AuditDataSettings says how long what happened is kept. */
export type AuditDataSettings = {
  id: number
  type: "AuditDataSettings"
  name: string | null
  _links?: Links
  administrativeHistoryRetentionPeriod: string | null
  ddnsTransactionRetentionPeriod: string | null
  destination: any
  dhcpTransactionRetentionPeriod: string | null
  exportEnabled: boolean
  sessionAndEventsRetentionPeriod: string | null
  userDefinedFields: any
}

/** Configuration is the top of a network's data: address space and names of two configurations never meet. */
export type Configuration = {
  id: number
  type: "Configuration"
  name: string | null
  _links?: Links
  blockUsageCalculation: "ADDRESS_ALLOCATION" | "NETWORK_ALLOCATION"
  checkIntegrityValidation: "NONE" | "LOCAL" | "LOCAL_SIBLING" | "FULL" | "FULL_SIBLING"
  checkMxCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkMxValidation: "IGNORE" | "WARN" | "FAIL"
  checkNamesValidation: "IGNORE" | "WARN" | "FAIL"
  checkNsValidation: "IGNORE" | "WARN" | "FAIL"
  checkSrvCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkWildcardValidation: "IGNORE" | "WARN"
  configurationGroup: string | null
  description: string | null
  dhcpConfigurationValidationEnabled: boolean
  dnsConfigurationValidationEnabled: boolean
  dnsFeedEnabled: boolean
  dnsFeedLicense: string | null
  dnsOptionInheritanceEnabled: boolean
  dnsZoneValidationEnabled: boolean
  fourEyesTypes: any[]
  keyAutoRegenerationEnabled: boolean
  serverMonitoringEnabled: boolean
  sharedNetworkTagGroup: Ref | null
  snmp: any
  userDefinedFields: any
}

/** DHCPActivityService sends what DHCP servers do. */
export type DHCPActivityService = {
  id: number
  type: "DHCPActivityService"
  name: string | null
  _links?: Links
  destination: any
  dhcpv4Enabled: boolean
  dhcpv6Enabled: boolean
  enabled: boolean
  maxBufferedEvents: number
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DHCPAlertSettings says when the usage of DHCP ranges is an event; DHCP is not served yet. */
export type DHCPAlertSettings = {
  id: number
  type: "DHCPAlertSettings"
  name: string | null
  _links?: Links
  highWaterMark: number | null
  lowWaterMark: number | null
  pollingInterval: string | null
  userDefinedFields: any
}

/** DHCPClientIdentifier is what a DHCPv4 client calls itself (RFC 2132 section 9.14). */
export type DHCPClientIdentifier = {
  id: number
  type: "DHCPClientIdentifier"
  name: string | null
  _links?: Links
  configuration: Ref | null
  uid: any
  userDefinedFields: any
}

/** DHCPDeploymentRole says which interface gives out the addresses of a block or network, and which one takes over from it. */
export type DHCPDeploymentRole = {
  id: number
  type: "DHCPDeploymentRole"
  name: string | null
  _links?: Links
  configuration: Ref | null
  interfaces?: any[]
  resource: Ref | null
  roleInterfaces: any[] | null
  roleType: "PRIMARY" | "NONE"
  userDefinedFields: any
}

/** DHCPForwardZone says where the names of clients in a zone are updated. */
export type DHCPForwardZone = {
  id: number
  type: "DHCPForwardZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  dynamicUpdateSigningKey: Ref | null
  dynamicUpdateSigningKeyRealm: Ref | null
  dynamicUpdateSigningKeyType: "NONE" | "TSIG" | "GSS_TSIG"
  primaryDnsServerAddress: string
  secondaryDnsServerAddress: string | null
  userDefinedFields: any
  zone: Ref | null
  zoneAbsoluteName: string | null
}

/** DHCPReverseZone says where the names of addresses in a prefix are updated. */
export type DHCPReverseZone = {
  id: number
  type: "DHCPReverseZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  dynamicUpdateSigningKey: Ref | null
  dynamicUpdateSigningKeyRealm: Ref | null
  dynamicUpdateSigningKeyType: "NONE" | "TSIG" | "GSS_TSIG"
  prefix: Ref | null
  prefixRange: string | null
  primaryDnsServerAddress: string
  secondaryDnsServerAddress: string | null
  userDefinedFields: any
}

/** DHCPStatisticsService sends figures of DHCP servers. */
export type DHCPStatisticsService = {
  id: number
  type: "DHCPStatisticsService"
  name: string | null
  _links?: Links
  destination: any
  dhcpv4Enabled: boolean
  dhcpv6Enabled: boolean
  enabled: boolean
  maxBufferedEvents: number
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DHCPUniqueIdentifier is what a DHCPv6 client calls itself: its DUID (RFC 8415 section 11). */
export type DHCPUniqueIdentifier = {
  id: number
  type: "DHCPUniqueIdentifier"
  name: string | null
  _links?: Links
  configuration: Ref | null
  duid: string
  userDefinedFields: any
}

/** DHCPVendorOption is an option of a vendor's own, which the vendor's clients are sent within option 43. */
export type DHCPVendorOption = {
  id: number
  type: "DHCPVendorOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DHCPVendorOptionDefinition is an option of a vendor's own, a part of option 43. */
export type DHCPVendorOptionDefinition = {
  id: number
  type: "DHCPVendorOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number
  description: string
  displayName: string
  userDefinedFields: any
  valueFormat: any
}

/** DHCPZoneGroup says to a group of DHCP servers where the names of their clients go, and how that is signed. */
export type DHCPZoneGroup = {
  id: number
  type: "DHCPZoneGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** DHCPv4ClientClass is a class of DHCPv4 clients: those of whom a part of what they send, or an expression, is alike. */
export type DHCPv4ClientClass = {
  id: number
  type: "DHCPv4ClientClass"
  name: string | null
  _links?: Links
  configuration: Ref | null
  description: string | null
  matchExpression: string | null
  matchLength: number | null
  matchOffset: number | null
  option: string | null
  userDefinedFields: any
}

/** DHCPv4ClientOption is an option that DHCPv4 clients are sent. */
export type DHCPv4ClientOption = {
  id: number
  type: "DHCPv4ClientOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DHCPv4ClientOptionDefinition is an option that a DHCPv4 server sends to clients. */
export type DHCPv4ClientOptionDefinition = {
  id: number
  type: "DHCPv4ClientOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/** DHCPv4CustomClientOptionDefinition is an option of one's own that a DHCPv4 server sends to clients. */
export type DHCPv4CustomClientOptionDefinition = {
  id: number
  type: "DHCPv4CustomClientOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number
  description: string
  displayName: string
  userDefinedFields: any
  valueFormat: any
}

/** DHCPv4Lease is an IPv4 address that a server gave to a client for a time. */
export type DHCPv4Lease = {
  id: number
  type: "DHCPv4Lease"
  name: string | null
  _links?: Links
  address: Ref | null
  configuration: Ref | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  state: "DHCP_ALLOCATED" | "DHCP_LEASED" | "DHCP_FREE" | "DHCP_ABANDONED" | null
  userDefinedFields: any
}

/** DHCPv4RawOption is text for the configuration of DHCPv4 servers. */
export type DHCPv4RawOption = {
  id: number
  type: "DHCPv4RawOption"
  name: string | null
  _links?: Links
  configuration: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: string
}

/** DHCPv4ServiceOption is a setting of DHCPv4 servers. */
export type DHCPv4ServiceOption = {
  id: number
  type: "DHCPv4ServiceOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DHCPv4ServiceOptionDefinition is a setting of a DHCPv4 server. */
export type DHCPv4ServiceOptionDefinition = {
  id: number
  type: "DHCPv4ServiceOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/** DHCPv4Subclass is the clients of a class that sent one value. */
export type DHCPv4Subclass = {
  id: number
  type: "DHCPv4Subclass"
  name: string | null
  _links?: Links
  configuration: Ref | null
  description: string | null
  userDefinedFields: any
  value: string
}

/** DHCPv6ClientOption is an option that DHCPv6 clients are sent. */
export type DHCPv6ClientOption = {
  id: number
  type: "DHCPv6ClientOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DHCPv6ClientOptionDefinition is an option that a DHCPv6 server sends to clients. */
export type DHCPv6ClientOptionDefinition = {
  id: number
  type: "DHCPv6ClientOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/** DHCPv6Lease is an IPv6 address that a server gave to a client for a time. */
export type DHCPv6Lease = {
  id: number
  type: "DHCPv6Lease"
  name: string | null
  _links?: Links
  address: Ref | null
  configuration: Ref | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  state: "DHCP_ALLOCATED" | "DHCP_LEASED" | "DHCP_FREE" | "DHCP_ABANDONED" | null
  userDefinedFields: any
}

/** DHCPv6RawOption is text for the configuration of DHCPv6 servers. */
export type DHCPv6RawOption = {
  id: number
  type: "DHCPv6RawOption"
  name: string | null
  _links?: Links
  configuration: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: string
}

/** DHCPv6ServiceOption is a setting of DHCPv6 servers. */
export type DHCPv6ServiceOption = {
  id: number
  type: "DHCPv6ServiceOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DHCPv6ServiceOptionDefinition is a setting of a DHCPv6 server. */
export type DHCPv6ServiceOptionDefinition = {
  id: number
  type: "DHCPv6ServiceOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/** DNSActivityService sends what name servers are asked, and answer. */
export type DNSActivityService = {
  id: number
  type: "DNSActivityService"
  name: string | null
  _links?: Links
  destination: any
  enabled: boolean
  filters: any[]
  maxBufferedEvents: number
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DNSDeploymentRole says which interfaces answer for a view, a zone, or the reverse zones of a block or network, and as what. */
export type DNSDeploymentRole = {
  id: number
  type: "DNSDeploymentRole"
  name: string | null
  _links?: Links
  configuration: Ref | null
  interfaces?: any[]
  nsRecordTtl: number | null
  resource: Ref | null
  roleInterfaces: any[] | null
  roleType: "PRIMARY" | "HIDDEN_PRIMARY" | "SECONDARY" | "STEALTH_SECONDARY" | "FORWARDING" | "STUB" | "RECURSIVE" | "NONE"
  userDefinedFields: any
  view: Ref | null
}

/** DNSMove is the moving of a zone or record to another name, and the record of it. */
export type DNSMove = {
  id: number
  type: "DNSMove"
  name: string | null
  _links?: Links
  absoluteName: string
  userDefinedFields: any
}

/** DNSOption is a setting of name servers. */
export type DNSOption = {
  id: number
  type: "DNSOption"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** DNSOptionDefinition is a setting of a name server. */
export type DNSOptionDefinition = {
  id: number
  type: "DNSOptionDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/** DNSRawOption is text for the configuration of name servers. */
export type DNSRawOption = {
  id: number
  type: "DNSRawOption"
  name: string | null
  _links?: Links
  configuration: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: string
}

/** DNSResolverService says whom the machine itself asks for names. */
export type DNSResolverService = {
  id: number
  type: "DNSResolverService"
  name: string | null
  _links?: Links
  serverVersion: string | null
  servers: any[]
  userDefinedFields: any
}

/** DNSSECSigningPolicy says how zones are signed: with which keys, for how long, and how keys follow each other. */
export type DNSSECSigningPolicy = {
  id: number
  type: "DNSSECSigningPolicy"
  name: string | null
  _links?: Links
  keyProvider: "ADDRESS_MANAGER" | "ENTRUST_HSM"
  keySigningKeyAlgorithm: "ECDSAP256SHA256" | "ECDSAP384SHA384" | "ED25519" | "ED448" | "RSAMD5" | "RSANSEC3SHA256" | "RSANSEC3SHA512" | "RSASHA1" | "RSASHA1NSEC3SHA1" | "RSASHA256" | "RSASHA512"
  keySigningKeyLength: number
  keySigningKeyOverlapPeriod: string
  keySigningKeyOverrideTtl: string | null
  keySigningKeyProtectionType: "MODULE" | null
  keySigningKeyRolloverMethod: "DOUBLE_SIGNING" | "PRE_PUBLISH"
  keySigningKeySigningPeriod: string | null
  keySigningKeyValidityPeriod: string
  signatureDigestAlgorithm: "SHA1" | "SHA256" | "SHA384"
  signatureResigningPeriod: string
  signatureValidityPeriod: string
  userDefinedFields: any
  zoneSigningKeyAlgorithm: "ECDSAP256SHA256" | "ECDSAP384SHA384" | "ED25519" | "ED448" | "RSAMD5" | "RSANSEC3SHA256" | "RSANSEC3SHA512" | "RSASHA1" | "RSASHA1NSEC3SHA1" | "RSASHA256" | "RSASHA512"
  zoneSigningKeyLength: number
  zoneSigningKeyOverlapPeriod: string
  zoneSigningKeyOverrideTtl: string | null
  zoneSigningKeyProtectionType: "MODULE" | null
  zoneSigningKeyRolloverMethod: "DOUBLE_SIGNING" | "PRE_PUBLISH"
  zoneSigningKeySigningPeriod: string | null
  zoneSigningKeyValidityPeriod: string
}

/** DNSStatisticsService sends figures of name servers. */
export type DNSStatisticsService = {
  id: number
  type: "DNSStatisticsService"
  name: string | null
  _links?: Links
  destination: any
  enabled: boolean
  maxBufferedEvents: number
  maximumBufferedEvents: number
  pollingInterval: string
  serverVersion: string | null
  userDefinedFields: any
}

/** DatabaseBackupFile is a backup of the database: a file on the machine of the manager that made it, or that it was sent to, which portolan restore takes. It is sent and fetched as it is (multipart/form-data, application/octet-stream). */
export type DatabaseBackupFile = {
  id: number
  type: "DatabaseBackupFile"
  name: string | null
  _links?: Links
  host: string | null
  modificationDateTime: string | null
  place: string | null
  sent: boolean
  size: number
  userDefinedFields: any
}

/** DatabaseBackupSchedule makes backups of the database at set times. PATCH {"state":"QUEUED"} makes one now. */
export type DatabaseBackupSchedule = {
  id: number
  type: "DatabaseBackupSchedule"
  name: string | null
  _links?: Links
  filePrefix: string | null
  interval: string | null
  lastDateTime: string | null
  lastRemoteDateTime: string | null
  localBackupsEnabled: boolean
  maxFileCount: number
  nextDateTime: string | null
  remoteBackupsEnabled: boolean
  remoteDirectory: string | null
  remoteHost: string | null
  remoteHostKey: string | null
  remotePassword?: string | null
  remoteUser: string | null
  startDateTime: string | null
  state?: "PENDING" | "QUEUED" | "UNKNOWN" | null
  transferProtocol: "FTP" | "SFTP" | "S3" | null
  userDefinedFields: any
}

/** DatabaseLog is a log of the database; it has none of its own: the manager's log has what is to be said. */
export type DatabaseLog = {
  id: number
  type: "DatabaseLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** DenyMACPool is the set of hardware addresses that get no address anywhere. Every configuration has one. */
export type DenyMACPool = {
  id: number
  type: "DenyMACPool"
  name: string | null
  _links?: Links
  configuration: Ref | null
  instantDeploymentEnabled: boolean
  userDefinedFields: any
}

/** DeploymentRoleMove is the moving of the roles of a server to another interface, and the record of it. */
export type DeploymentRoleMove = {
  id: number
  type: "DeploymentRoleMove"
  name: string | null
  _links?: Links
  destination: Ref
  roleTypes: any[]
  source: Ref | null
  transaction: any
  userDefinedFields: any
}

/** DeploymentSchedule deploys to servers at set times. */
export type DeploymentSchedule = {
  id: number
  type: "DeploymentSchedule"
  name: string | null
  _links?: Links
  configuration: Ref | null
  deploymentServices: any[]
  deploymentType: "DifferentialDeployment" | "FullDeployment" | "ValidationDeployment"
  enabled: boolean
  interval: string | null
  lastDateTime: string | null
  nextDateTime: string | null
  servers?: any[]
  startDateTime: string
  userDefinedFields: any
}

/** Device is a box that addresses belong to. */
export type Device = {
  id: number
  type: "Device"
  name: string | null
  _links?: Links
  addresses?: any[] | null
  configuration: Ref | null
  deviceSubtype: Ref | null
  deviceType: Ref | null
  userDefinedFields: any
}

/** DeviceSubtype is a kind of devices within another one, such as a model of a maker. */
export type DeviceSubtype = {
  id: number
  type: "DeviceSubtype"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** DeviceType is a maker or a kind of devices. */
export type DeviceType = {
  id: number
  type: "DeviceType"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** DifferentialDeployment carries what has changed of the records of a server's zones since the deployment before. */
export type DifferentialDeployment = {
  id: number
  type: "DifferentialDeployment"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  creationDateTime: string | null
  message: string | null
  method: string | null
  percentComplete: number | null
  service: "DHCPv4" | "DHCPv6" | "DNS" | "TFTP"
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  status: "CANCEL" | null
  user: Ref | null
  userDefinedFields: any
}

/** DiscoveredARPEntry is who a router says has an address. */
export type DiscoveredARPEntry = {
  id: number
  type: "DiscoveredARPEntry"
  name: string | null
  _links?: Links
  address: string | null
  device: Ref | null
  interface: Ref | null
  macAddress: string | null
  userDefinedFields: any
}

/** DiscoveredHost is a host that answers. */
export type DiscoveredHost = {
  id: number
  type: "DiscoveredHost"
  name: string | null
  _links?: Links
  address: string | null
  device: Ref | null
  interface: Ref | null
  macAddress: string | null
  userDefinedFields: any
}

/** DiscoveredInterface is an interface of a router or switch. */
export type DiscoveredInterface = {
  id: number
  type: "DiscoveredInterface"
  name: string | null
  _links?: Links
  alias: string | null
  connector: string | null
  description: string | null
  device: Ref | null
  interfaceIndex: number | null
  macAddress: string | null
  speed: number | null
  userDefinedFields: any
}

/** DiscoveredMACAddress is a hardware address that a switch has seen. */
export type DiscoveredMACAddress = {
  id: number
  type: "DiscoveredMACAddress"
  name: string | null
  _links?: Links
  device: Ref | null
  interface: Ref | null
  macAddress: string | null
  portMode: "TRUNK" | "ACCESS" | null
  userDefinedFields: any
}

/** DiscoveredNetwork is a network that a router has. */
export type DiscoveredNetwork = {
  id: number
  type: "DiscoveredNetwork"
  name: string | null
  _links?: Links
  device: Ref | null
  interface: Ref | null
  range: string | null
  userDefinedFields: any
}

/** DiscoveredRouter is a router. */
export type DiscoveredRouter = {
  id: number
  type: "DiscoveredRouter"
  name: string | null
  _links?: Links
  address: string | null
  description: string | null
  location: string | null
  userDefinedFields: any
}

/** DiscoveredSwitch is a switch. */
export type DiscoveredSwitch = {
  id: number
  type: "DiscoveredSwitch"
  name: string | null
  _links?: Links
  address: string | null
  description: string | null
  location: string | null
  userDefinedFields: any
}

/** DiscoveredVLAN is a VLAN of a switch. */
export type DiscoveredVLAN = {
  id: number
  type: "DiscoveredVLAN"
  name: string | null
  _links?: Links
  device: Ref | null
  interface: Ref | null
  userDefinedFields: any
  vlanId: number | null
}

/** ENUMNumberZone is a telephone number, or the beginning of some, below an ENUM zone: its digits, the last one first, as names have them. */
export type ENUMNumberZone = {
  id: number
  type: "ENUMNumberZone"
  name: string | null
  _links?: Links
  absoluteName: string | null
  configuration: Ref | null
  numberName: string | null
  userDefinedFields: any
  view: Ref | null
}

/** ENUMZone holds telephone numbers as names (RFC 6116), such as e164.arpa. */
export type ENUMZone = {
  id: number
  type: "ENUMZone"
  name: string | null
  _links?: Links
  absoluteName: string | null
  configuration: Ref | null
  deploymentEnabled: boolean
  userDefinedFields: any
  view: Ref | null
}

/** Event is something that happened. */
export type Event = {
  id: number
  type: "Event"
  name: string | null
  _links?: Links
  category: "APPLICATION" | "DATABASE_MAINTENANCE" | "DATA_CHECKER" | "DATA_COLLECTION" | "DDNS_NOTIFICATION" | "DEPLOYMENT" | "DEPLOYMENT_DATA_VALIDATION" | "DHCP_ALERT" | "DHCP_LEASE_SYNCHRONIZATION" | "DNSSEC_KEY_EXPIRATION" | "IP_RECONCILIATION" | "IP_TEMPLATE" | "MIGRATION" | "REPORT_SCHEDULER" | "SERVER_HIGH_AVAILABILITY" | "SERVER_MONITORING" | "SOFTWARE_UPDATE" | "SSO_MANAGEMENT" | "SYSTEM_MAINTENANCE" | "TRUST_RELATIONSHIP" | "WORKFLOW_REQUEST" | "ZONE_TEMPLATE" | null
  dateTime: string | null
  details: any
  eventType: "INFO" | "WARNING" | "ERROR" | "SUCCESS" | "FAILED" | "NOT_DEPLOYED" | "INVALID" | "NO_ROLE" | "RESPONSE_POLICY_ZONES_NOT_DEPLOYED" | "VALID" | null
  message: string | null
  payload: string | null
  source: Ref | null
  sourceName: string | null
  subcategory: "DNS" | "DHCPv4" | "DHCPv6" | "TFTP" | null
  taskId: string | null
  user: Ref | null
  userDefinedFields: any
}

/** ExternalHostRecord is the name of a host that is somebody else's, for records to link to. It is not served. */
export type ExternalHostRecord = {
  id: number
  type: "ExternalHostRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  ttl: number | null
  userDefinedFields: any
  view?: Ref | null
}

/** ExternalHostsZone holds the names of hosts of other organisations. Every view has one. */
export type ExternalHostsZone = {
  id: number
  type: "ExternalHostsZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
  view: Ref | null
}

/** FailoverAPIService lets another manager take over; there is none. */
export type FailoverAPIService = {
  id: number
  type: "FailoverAPIService"
  name: string | null
  _links?: Links
  certificate: string | null
  enabled: boolean
  privateKey?: string | null
  serverVersion: string | null
  trustStore: any[] | null
  trustStorePassword?: string | null
  userDefinedFields: any
}

/** FirewallService says what the machine lets in. */
export type FirewallService = {
  id: number
  type: "FirewallService"
  name: string | null
  _links?: Links
  enabled: boolean
  pingAllowed: boolean
  serverVersion: string | null
  userDefinedFields: any
}

/** FleetRight says what a user, or the members of a group, may do with the service points that have some labels. Users who see everything, and administrators, need none to see them. It is ours. */
export type FleetRight = {
  id: number
  type: "FleetRight"
  name: string | null
  _links?: Links
  accessLevel: "VIEW" | "CHANGE" | "FULL"
  labels: any[]
  userDefinedFields: any
  userScope: Ref
}

/** FullDeployment carries all that a server is to have of a service. */
export type FullDeployment = {
  id: number
  type: "FullDeployment"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  creationDateTime: string | null
  message: string | null
  method: string | null
  percentComplete: number | null
  service: "DHCPv4" | "DHCPv6" | "DNS" | "TFTP"
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  status: "CANCEL" | null
  user: Ref | null
  userDefinedFields: any
}

/** GatewayService runs a container on the machine. */
export type GatewayService = {
  id: number
  type: "GatewayService"
  name: string | null
  _links?: Links
  container: any
  deleteImageOnDisable: boolean | null
  deleteMountPointsOnDisable: boolean | null
  enabled: boolean
  repositoryPassword?: string | null
  repositoryUsername: string | null
  serverVersion: string | null
  state: "RUNNING" | "STOPPED" | "DISABLED" | "UNKNOWN" | null
  userDefinedFields: any
}

/** GenericRecord is a record of any other type, its data in zone-file syntax. */
export type GenericRecord = {
  id: number
  type: "GenericRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  rdata: string
  recordType: string
  ttl: number | null
  userDefinedFields: any
}

/** GlobalSettings says how the manager behaves towards everybody. */
export type GlobalSettings = {
  id: number
  type: "GlobalSettings"
  name: string | null
  _links?: Links
  customReverseZoneFormatsAllowed: boolean
  disclaimerEnabled: boolean
  disclaimerText: string | null
  mandatoryCommentsEnabled: boolean
  rememberLastAddressEnabled: boolean
  sessionTimeout: string
  userDefinedFields: any
}

/** HAServer is a pair of servers of which one answers, and the other stands by. */
export type HAServer = {
  id: number
  type: "HAServer"
  name: string | null
  _links?: Links
  activeServer?: Ref
  checkIntegrityValidation: "NONE" | "LOCAL" | "LOCAL_SIBLING" | "FULL" | "FULL_SIBLING"
  checkMxCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkMxValidation: "IGNORE" | "WARN" | "FAIL"
  checkNamesValidation: "IGNORE" | "WARN" | "FAIL"
  checkNsValidation: "IGNORE" | "WARN" | "FAIL"
  checkSrvCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkWildcardValidation: "IGNORE" | "WARN"
  configuration: Ref | null
  connected: boolean
  dhcpConfigurationValidationEnabled: boolean
  dhcpServicePrincipal: Ref | null
  dnsConfigurationValidationEnabled: boolean
  dnsServicePrincipal: Ref | null
  dnsZoneValidationEnabled: boolean
  encryptedNotificationsEnabled?: boolean | null
  haBackboneEnabled: boolean
  haPingAddress: string | null
  interfaces?: any[]
  location: Ref | null
  managementUrl: string | null
  monitoringEnabled: boolean | null
  overrideConfigurationLevelDhcpValidation: boolean
  overrideConfigurationLevelDnsValidation: boolean
  passiveServer?: Ref
  password?: string | null
  privateAddress: string | null
  profile: "ADONIS_XMB4" | "ADONIS_XMB3" | "ADONIS_XMB2" | "OTHER_DNS_SERVER" | "AFILIAS_DNS_SERVER" | "ADONIS_800" | "ADONIS_1200" | "ADONIS_1900" | "ADONIS_1950" | "DNS_DHCP_SERVER_20" | "DNS_DHCP_SERVER_45" | "DNS_DHCP_SERVER_60" | "DNS_DHCP_SERVER_100" | "DNS_DHCP_SERVER_100_D" | "LTM" | "GTM" | "DNS_DHCP_GEN4_7000" | "DNS_DHCP_GEN4_5000" | "DNS_DHCP_GEN4_4000" | "DNS_DHCP_GEN4_2000" | "CLOUD_DNS_SERVER" | null
  selfIpAddress: string | null
  serverGroup: Ref | null
  servicePoint: string | null
  serviceProviderAccount: string | null
  serviceProviderApiKey: string | null
  snmp: any
  state: "ENABLED" | "DISABLED" | "FAILOVER" | "RESET_CONTROL" | "REPAIR" | "DISABLE" | null
  statistics: any
  userDefinedFields: any
  username: string | null
}

/** HINFORecord says what a host is (RFC 1035 section 3.3.2). */
export type HINFORecord = {
  id: number
  type: "HINFORecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  cpu: string | null
  dynamic: boolean
  os: string | null
  recordType: string | null
  ttl: number | null
  userDefinedFields: any
}

/** HTTPSRecord binds a name of the web to where its service is given. */
export type HTTPSRecord = {
  id: number
  type: "HTTPSRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  linkedRecord: Ref | null
  priority: number
  recordType: string | null
  serviceParameters: any
  ttl: number | null
  userDefinedFields: any
}

/** HostRecord names the addresses of a host: A and AAAA records, and PTR records with ReverseRecord. */
export type HostRecord = {
  id: number
  type: "HostRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  addresses?: any[]
  comment: string | null
  configuration: Ref | null
  dependentRecords?: any[] | null
  dynamic: boolean
  reverseRecord: boolean
  ttl: number | null
  userDefinedFields: any
  views?: any[] | null
}

/** IPMove is the moving of an address, or of a block or network with all in it, and the record of it. */
export type IPMove = {
  id: number
  type: "IPMove"
  name: string | null
  _links?: Links
  address: string
  macAddress: Ref | null
  serversUpdated?: boolean | null
  userDefinedFields: any
}

/** IPv4Address is an IPv4 address in use. */
export type IPv4Address = {
  id: number
  type: "IPv4Address"
  name: string | null
  _links?: Links
  address: string | null
  circuitId: string | null
  clientIdentifier: Ref | null
  configuration: Ref | null
  device: Ref | null
  ipGroup: Ref | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  location: Ref | null
  macAddress: Ref | null
  parameterRequestList: any[] | null
  remoteId: string | null
  resourceRecords?: any[] | null
  routerPortInfo: string | null
  state: "STATIC" | "RESERVED" | "DHCP_RESERVED" | "GATEWAY"
  switchPortInfo: string | null
  template: Ref | null
  userDefinedFields: any
  vendorClassIdentifier: string | null
  vlanInfo: string | null
}

/** IPv4AddressImport makes addresses in a network. */
export type IPv4AddressImport = {
  id: number
  type: "IPv4AddressImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv4AddressMove is the moving of an IPv4 address, and the record of it. */
export type IPv4AddressMove = {
  id: number
  type: "IPv4AddressMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv4Block is a piece of IPv4 address space that holds blocks and networks. */
export type IPv4Block = {
  id: number
  type: "IPv4Block"
  name: string | null
  _links?: Links
  configuration: Ref | null
  defaultView: Ref | null
  defaultZones?: any[] | null
  defaultZonesInherited: boolean
  duplicateHostnamesAllowed: boolean | null
  highWaterMark: number | null
  location: Ref | null
  lowWaterMark: number | null
  pingBeforeAssignEnabled: boolean | null
  pingBeforeAssignmentEnabled: boolean | null
  range: string
  restrictedZones?: any[] | null
  restrictedZonesInherited: boolean
  reverseZoneSigned: boolean
  reverseZoneSigningPolicy: Ref | null
  template: Ref | null
  usagePercentage: any
  userDefinedFields: any
}

/** IPv4BlockImport makes blocks in a block. */
export type IPv4BlockImport = {
  id: number
  type: "IPv4BlockImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv4BlockMerge is the merging of blocks into one, and the record of it. */
export type IPv4BlockMerge = {
  id: number
  type: "IPv4BlockMerge"
  name: string | null
  _links?: Links
  blocks?: any[]
  destination: Ref
  transaction: any
  userDefinedFields: any
}

/** IPv4BlockMove is the moving of an IPv4 block with all in it, and the record of it. */
export type IPv4BlockMove = {
  id: number
  type: "IPv4BlockMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv4BlockSplit is the splitting of a block in two, and the record of it. */
export type IPv4BlockSplit = {
  id: number
  type: "IPv4BlockSplit"
  name: string | null
  _links?: Links
  block: Ref
  splitPointAddress: string | null
  transaction: any
  userDefinedFields: any
}

/** IPv4DHCPRange is a part of a network that a DHCP server gives out. */
export type IPv4DHCPRange = {
  id: number
  type: "IPv4DHCPRange"
  name: string | null
  _links?: Links
  configuration: Ref | null
  exclusionRanges: any[]
  highWaterMark: number | null
  lowWaterMark: number | null
  range: string
  splitAroundStaticAddresses: boolean
  template: Ref | null
  usage: any
  userDefinedFields: any
}

/** IPv4DHCPRangeMerge is the merging of DHCP ranges into one, and the record of it. */
export type IPv4DHCPRangeMerge = {
  id: number
  type: "IPv4DHCPRangeMerge"
  name: string | null
  _links?: Links
  destination: Ref
  ranges?: any[]
  transaction: any
  userDefinedFields: any
}

/** IPv4DHCPRangeTemplateItem says where a DHCP range lies. */
export type IPv4DHCPRangeTemplateItem = {
  id: number
  type: "IPv4DHCPRangeTemplateItem"
  name: string | null
  _links?: Links
  endOffset: number | null
  rangeDefinitionFormat: "OFFSET_SIZE_FROM_START" | "OFFSET_SIZE_FROM_END" | "OFFSETS" | "OFFSET_PERCENTAGE_FROM_START" | "OFFSET_PERCENTAGE_FROM_END"
  size: number | null
  splitAroundStaticAddresses: boolean
  startOffset: number
  userDefinedFields: any
}

/** IPv4GatewayTemplateItem says where the gateway is. */
export type IPv4GatewayTemplateItem = {
  id: number
  type: "IPv4GatewayTemplateItem"
  name: string | null
  _links?: Links
  rangeDefinitionFormat: "OFFSET_SIZE_FROM_START" | "OFFSET_SIZE_FROM_END"
  startOffset: number
  userDefinedFields: any
}

/** IPv4Group is a part of a network under a name. */
export type IPv4Group = {
  id: number
  type: "IPv4Group"
  name: string | null
  _links?: Links
  configuration: Ref | null
  range: string
  userDefinedFields: any
}

/** IPv4GroupTemplateItem says where an IP group lies. */
export type IPv4GroupTemplateItem = {
  id: number
  type: "IPv4GroupTemplateItem"
  name: string | null
  _links?: Links
  rangeDefinitionFormat: "OFFSET_SIZE_FROM_START" | "OFFSET_SIZE_FROM_END"
  size: number
  startOffset: number
  userDefinedFields: any
}

/** IPv4Network is an IPv4 subnet: a leaf of the address tree that holds addresses and ranges. */
export type IPv4Network = {
  id: number
  type: "IPv4Network"
  name: string | null
  _links?: Links
  configuration: Ref | null
  defaultView: Ref | null
  defaultZones?: any[] | null
  defaultZonesInherited: boolean
  duplicateHostnamesAllowed: boolean | null
  dynamicUpdateEnabled: boolean
  gateway: string | null
  highWaterMark: number | null
  location: Ref | null
  lowWaterMark: number | null
  pingBeforeAssignEnabled: boolean | null
  pingBeforeAssignmentEnabled: boolean | null
  range: string
  restrictedZones?: any[] | null
  restrictedZonesInherited: boolean
  reverseZoneSigned: boolean
  reverseZoneSigningPolicy: Ref | null
  routerPortInfo: string | null
  sharedNetworkTag: Ref | null
  template: Ref | null
  usage: any
  userDefinedFields: any
}

/** IPv4NetworkImport makes networks in a block. */
export type IPv4NetworkImport = {
  id: number
  type: "IPv4NetworkImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv4NetworkMerge is the merging of networks into one, and the record of it. */
export type IPv4NetworkMerge = {
  id: number
  type: "IPv4NetworkMerge"
  name: string | null
  _links?: Links
  destination: Ref
  networks?: any[]
  transaction: any
  userDefinedFields: any
}

/** IPv4NetworkMove is the moving of an IPv4 network with all in it, and the record of it. */
export type IPv4NetworkMove = {
  id: number
  type: "IPv4NetworkMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv4NetworkSplit is the splitting of a network into equal parts, and the record of it. */
export type IPv4NetworkSplit = {
  id: number
  type: "IPv4NetworkSplit"
  name: string | null
  _links?: Links
  conflictResolutionStrategy?: "USE_EXISTING" | "OVERWRITE" | null
  defaultGatewayAssigned?: boolean | null
  gatewayPreserved?: boolean | null
  network: Ref
  networkCount: number
  template?: Ref | null
  transaction: any
  userDefinedFields: any
}

/** IPv4ReconciliationPolicy says how what is in the network is compared with what is known here. */
export type IPv4ReconciliationPolicy = {
  id: number
  type: "IPv4ReconciliationPolicy"
  name: string | null
  _links?: Links
  blackHoleVlan: number
  configuration: Ref | null
  discoveryMethod: "SNMP" | "PINGSWEEP" | "SNMP_PINGSWEEP" | "NO_DISCOVERY"
  dnsServers: any[] | null
  enabled: boolean
  frequency: string | null
  lastDateTime: string | null
  mismatchAcceptanceAge: string | null
  networkBoundaries: any[] | null
  nextDateTime: string | null
  overrides: any[] | null
  pingSweepNetworkGaps: any[] | null
  reclaimAcceptanceAge: string | null
  seedRouterAddresses: any[] | null
  skipFqdnEnabled: boolean
  snmp: any
  startDateTime: string
  trunkDefaultVlan: number
  unknownAcceptanceAge: string | null
  userDefinedFields: any
  view: Ref | null
}

/** IPv4ReservedRangeTemplateItem says which addresses are reserved. */
export type IPv4ReservedRangeTemplateItem = {
  id: number
  type: "IPv4ReservedRangeTemplateItem"
  name: string | null
  _links?: Links
  rangeDefinitionFormat: "OFFSET_SIZE_FROM_START" | "OFFSET_SIZE_FROM_END"
  size: number
  startOffset: number
  userDefinedFields: any
}

/** IPv4Template says how networks are laid out: gateway, reserved addresses, DHCP ranges and IP groups, by their places in a network. */
export type IPv4Template = {
  id: number
  type: "IPv4Template"
  name: string | null
  _links?: Links
  configuration: Ref | null
  templateItems?: any[] | null
  userDefinedFields: any
}

/** IPv4TemplateApplication is the applying of IPv4 templates to networks, and the record of it. */
export type IPv4TemplateApplication = {
  id: number
  type: "IPv4TemplateApplication"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  conflictResolutionStrategy: "USE_EXISTING" | "OVERWRITE" | "ABORT" | null
  deploymentOptionsApplied: boolean | null
  dhcpRangeItemsApplied: boolean | null
  gatewayItemApplied: boolean | null
  ipGroupItemsApplied: boolean | null
  orphanedAddressConversionStrategy: "STATIC" | "DHCP_RESERVED" | "UNASSIGNED" | null
  reservedRangeItemsApplied: boolean | null
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  userDefinedFields: any
}

/** IPv6Address is an IPv6 address in use. */
export type IPv6Address = {
  id: number
  type: "IPv6Address"
  name: string | null
  _links?: Links
  address: string | null
  clientIdentifier: Ref | null
  configuration: Ref | null
  device: Ref | null
  identityAssociationIdentifier: string | null
  interfaceId: string | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  location: Ref | null
  macAddress: Ref | null
  remoteId: string | null
  reservedUsing: "CLIENT_DUID" | "MAC_ADDRESS" | null
  resourceRecords?: any[] | null
  state: "DHCP_RESERVED" | "STATIC"
  userDefinedFields: any
}

/** IPv6AddressImport makes addresses in a network. */
export type IPv6AddressImport = {
  id: number
  type: "IPv6AddressImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv6AddressMove is the moving of an IPv6 address, and the record of it. */
export type IPv6AddressMove = {
  id: number
  type: "IPv6AddressMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv6Block is a piece of IPv6 address space that holds blocks and networks. */
export type IPv6Block = {
  id: number
  type: "IPv6Block"
  name: string | null
  _links?: Links
  configuration: Ref | null
  defaultZones?: any[] | null
  location: Ref | null
  range: string
  restrictedZones?: any[] | null
  userDefinedFields: any
}

/** IPv6BlockImport makes blocks in a block. */
export type IPv6BlockImport = {
  id: number
  type: "IPv6BlockImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv6BlockMove is the moving of an IPv6 block with all in it, and the record of it. */
export type IPv6BlockMove = {
  id: number
  type: "IPv6BlockMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv6DHCPRange is a part of a network that a DHCPv6 server gives out. */
export type IPv6DHCPRange = {
  id: number
  type: "IPv6DHCPRange"
  name: string | null
  _links?: Links
  configuration: Ref | null
  range: string
  usage: any
  userDefinedFields: any
}

/** IPv6Network is an IPv6 subnet: a leaf of the address tree that holds addresses and ranges. */
export type IPv6Network = {
  id: number
  type: "IPv6Network"
  name: string | null
  _links?: Links
  configuration: Ref | null
  defaultZones?: any[] | null
  location: Ref | null
  range: string
  restrictedZones?: any[] | null
  userDefinedFields: any
}

/** IPv6NetworkImport makes networks in a block. */
export type IPv6NetworkImport = {
  id: number
  type: "IPv6NetworkImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** IPv6NetworkMove is the moving of an IPv6 network with all in it, and the record of it. */
export type IPv6NetworkMove = {
  id: number
  type: "IPv6NetworkMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** IPv6ReconciliationPolicy says how what is in the network is compared with what is known here. */
export type IPv6ReconciliationPolicy = {
  id: number
  type: "IPv6ReconciliationPolicy"
  name: string | null
  _links?: Links
  blackHoleVlan: number
  configuration: Ref | null
  discoveryMethod: "SNMP" | "NO_DISCOVERY"
  dnsServers: any[] | null
  enabled: boolean
  frequency: string | null
  lastDateTime: string | null
  nextDateTime: string | null
  seedRouterAddresses: any[] | null
  skipFqdnEnabled: boolean
  snmp: any
  startDateTime: string
  trunkDefaultVlan: number
  userDefinedFields: any
}

/** ImportLog is what is to be said of an import: what was wrong with which row. */
export type ImportLog = {
  id: number
  type: "ImportLog"
  name: string | null
  _links?: Links
  contents: string | null
  modificationDateTime: string | null
  size: number
  userDefinedFields: any
}

/** InterfacesService says which addresses and routes the machine has. */
export type InterfacesService = {
  id: number
  type: "InterfacesService"
  name: string | null
  _links?: Links
  dedicatedManagementEnabled: boolean
  interfaces: any[]
  routes: any[]
  serverVersion: string | null
  userDefinedFields: any
}

/** InternalRootZone is a view's own root of the names: one in a view. */
export type InternalRootZone = {
  id: number
  type: "InternalRootZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  deploymentEnabled: boolean
  userDefinedFields: any
  view: Ref | null
}

/** KerberosAuthenticator knows users from a realm of Kerberos. */
export type KerberosAuthenticator = {
  id: number
  type: "KerberosAuthenticator"
  name: string | null
  _links?: Links
  hostname: string
  keytab?: string | null
  realm: string
  secondaryAuthenticator: Ref | null
  userDefinedFields: any
}

/** KerberosRealm is the realm of Kerberos that servers and DHCP updates sign in with. */
export type KerberosRealm = {
  id: number
  type: "KerberosRealm"
  name: string | null
  _links?: Links
  configuration: Ref | null
  domain: string
  userDefinedFields: any
}

/** KerberosServicePrincipal is what a service is called in a realm. */
export type KerberosServicePrincipal = {
  id: number
  type: "KerberosServicePrincipal"
  name: string | null
  _links?: Links
  keyVersionNumber: number
  password?: string
  userDefinedFields: any
}

/** KeyDistributionCenter is a server that gives out the tickets of a realm. */
export type KeyDistributionCenter = {
  id: number
  type: "KeyDistributionCenter"
  name: string | null
  _links?: Links
  configuration: Ref | null
  host: string
  port: number
  userDefinedFields: any
}

/** KeySigningKey is the key that the keys of a signed zone are signed with (RFC 6781). */
export type KeySigningKey = {
  id: number
  type: "KeySigningKey"
  name: string | null
  _links?: Links
  algorithm: "ECDSAP256SHA256" | "ECDSAP384SHA384" | "ED25519" | "ED448" | "RSAMD5" | "RSANSEC3SHA256" | "RSANSEC3SHA512" | "RSASHA1" | "RSASHA1NSEC3SHA1" | "RSASHA256" | "RSASHA512" | null
  configuration: Ref | null
  dnsKeyRecord: string | null
  dsConfirmed: boolean
  dsConfirmedDateTime: string | null
  dsRecord: string | null
  dsWithdrawn: boolean
  flags: number | null
  keyExpirationDateTime: string | null
  keyGenerationDateTime: string | null
  keyProvider: string | null
  keyStartDateTime: string | null
  keyTag: number | null
  length: number | null
  privateKey?: string | null
  privateKeyEncoding: "PKCS8" | "X509" | null
  publicKey: string | null
  publicKeyEncoding: "PKCS8" | "X509" | null
  state: "GENERATED" | "NOT_GENERATED" | "REGENERATE" | null
  ttl: string | null
  userDefinedFields: any
}

/** LDAPAuthenticator knows users from a directory. */
export type LDAPAuthenticator = {
  id: number
  type: "LDAPAuthenticator"
  name: string | null
  _links?: Links
  adminDn: string
  adminPassword?: string | null
  aliasDereferencePolicy: "ALWAYS" | "NEVER" | "FINDING" | "SEARCHING"
  caCertificate: string | null
  emailPrefix: string | null
  groupObjectClass: string | null
  hostname: string
  memberOfPrefix: string | null
  port: number
  referralPolicy: "IGNORE" | "FOLLOW" | "THROW"
  schemaType: "ACTIVE_DIRECTORY" | "OPENLDAP" | "OTHER_LDAP"
  searchBase: string
  secondaryAuthenticator: Ref | null
  sslEnabled: boolean
  startTlsEnabled: boolean
  userDefinedFields: any
  userObjectClass: string | null
  userPrefix: string | null
}

/** LicenseService holds the licence of the machine. */
export type LicenseService = {
  id: number
  type: "LicenseService"
  name: string | null
  _links?: Links
  clientId: string | null
  key: string | null
  serverVersion: string | null
  userDefinedFields: any
}

/** Location is a place: a country, made with the data, or a place below another one. */
export type Location = {
  id: number
  type: "Location"
  name: string | null
  _links?: Links
  code: string
  country: string | null
  description: string | null
  latitude: number | null
  localizedName: string | null
  locode: string | null
  longitude: number | null
  subdivision: string | null
  userDefinedFields: any
}

/** LogLevelSettings says what the parts of the manager log, as soon as they are written. Where the command line says it (--log-level) they cannot be changed. */
export type LogLevelSettings = {
  id: number
  type: "LogLevelSettings"
  name: string | null
  _links?: Links
  addressManager: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  discoveryEngine: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  monitoringService: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  reconciliationService: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  restV2: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  rrdTool: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  snmpClient: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
  userDefinedFields: any
  zoneImport: "OFF" | "FATAL" | "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE" | "ALL"
}

/** LoginPolicySettings says how long who guesses passwords is made to wait. */
export type LoginPolicySettings = {
  id: number
  type: "LoginPolicySettings"
  name: string | null
  _links?: Links
  delayDuration: string
  enabled: boolean
  failureLimit: number
  failureLimitPeriod: string
  userDefinedFields: any
}

/** MACAddress is the hardware address of a client. */
export type MACAddress = {
  id: number
  type: "MACAddress"
  name: string | null
  _links?: Links
  address: string
  configuration: Ref | null
  macPool: Ref | null
  userDefinedFields: any
}

/** MACPool is a set of hardware addresses, which ranges allow or deny by their options. A hardware address is in one pool at most. */
export type MACPool = {
  id: number
  type: "MACPool"
  name: string | null
  _links?: Links
  configuration: Ref | null
  instantDeploymentEnabled: boolean
  userDefinedFields: any
}

/** MXRecord names a mail exchange of a name (RFC 5321). */
export type MXRecord = {
  id: number
  type: "MXRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  linkedRecord: Ref
  priority: number
  recordType: string | null
  ttl: number | null
  userDefinedFields: any
}

/** MonitoringSettings says what is watched, and how often. */
export type MonitoringSettings = {
  id: number
  type: "MonitoringSettings"
  name: string | null
  _links?: Links
  addressManagerMonitoring: any
  f5ServerMonitoring: any
  serverMonitoring: any
  userDefinedFields: any
}

/** NAPTRRecord is a rule that makes one name of another (RFC 3403). */
export type NAPTRRecord = {
  id: number
  type: "NAPTRRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  flags: string | null
  order: number
  preference: number
  recordType: string | null
  regularExpression: string | null
  replacement: string | null
  service: string | null
  ttl: number | null
  userDefinedFields: any
}

/** NTPService says whom the machine asks for the time. */
export type NTPService = {
  id: number
  type: "NTPService"
  name: string | null
  _links?: Links
  enabled: boolean
  manualOverrideEnabled: boolean
  serverVersion: string | null
  servers: any[]
  userDefinedFields: any
}

/** NamingPolicy says how names in views and zones are composed: of its values, one behind the other, and of nothing that its restrictions name. */
export type NamingPolicy = {
  id: number
  type: "NamingPolicy"
  name: string | null
  _links?: Links
  appliedTypes: any[] | null
  inheritanceEnabled: boolean | null
  policyRestrictions?: any[] | null
  policyValues?: any[] | null
  userDefinedFields: any
}

/** NamingPolicyConnectorValue is text between other parts. */
export type NamingPolicyConnectorValue = {
  id: number
  type: "NamingPolicyConnectorValue"
  name: string | null
  _links?: Links
  connector: string
  userDefinedFields: any
}

/** NamingPolicyIncrementalValue is a number that counts. A new name with a "#" in its place is given the next one. */
export type NamingPolicyIncrementalValue = {
  id: number
  type: "NamingPolicyIncrementalValue"
  name: string | null
  _links?: Links
  incrementType: "DECIMAL" | "HEXADECIMAL"
  incrementalRole: "UNIQUE_NAME" | "COUNTER"
  missingValueReuseEnabled: boolean | null
  paddingLength: number | null
  paddingType: "NONE" | "SIMPLE" | "GLOBAL"
  sequenceIncrement: number | null
  sequenceStart: number | null
  userDefinedFields: any
}

/** NamingPolicyIntegerValue is a number within bounds. */
export type NamingPolicyIntegerValue = {
  id: number
  type: "NamingPolicyIntegerValue"
  name: string | null
  _links?: Links
  max: number | null
  min: number | null
  userDefinedFields: any
}

/** NamingPolicyRequiredValue is one of a list of texts. */
export type NamingPolicyRequiredValue = {
  id: number
  type: "NamingPolicyRequiredValue"
  name: string | null
  _links?: Links
  elements: any[]
  userDefinedFields: any
}

/** NamingPolicyRestriction lists what no name may be or hold. */
export type NamingPolicyRestriction = {
  id: number
  type: "NamingPolicyRestriction"
  name: string | null
  _links?: Links
  restrictions: any[]
  userDefinedFields: any
}

/** NamingPolicyTextValue is text of some length, or that matches an expression. */
export type NamingPolicyTextValue = {
  id: number
  type: "NamingPolicyTextValue"
  name: string | null
  _links?: Links
  maxLength: number | null
  minLength: number | null
  regularExpression: string | null
  textType: "LENGTH" | "REGULAR_EXPRESSION"
  userDefinedFields: any
}

/** NetworkInterface is the interface of a server. It comes with the server, and is changed through it. */
export type NetworkInterface = {
  id: number
  type: "NetworkInterface"
  name: string | null
  _links?: Links
  configuration: Ref | null
  haBackboneAddress: string | null
  haBackbonePrefixLength: number | null
  managementAddress: string | null
  managementAddressPrefixLength: number | null
  redundancyEnabled: boolean
  redundancyScenario: "ACTIVE_BACKUP" | "ACTIVE_ACTIVE" | null
  secondaryAddress: string | null
  server: Ref | null
  servicesIpv4Address: string | null
  servicesIpv4PrefixLength: number | null
  servicesIpv6Address: string | null
  servicesIpv6PrefixLength: number | null
  userDefinedFields: any
}

/** NotificationGroup is who is told of events: users and the members of groups, by mail; or the receivers of SNMP traps. */
export type NotificationGroup = {
  id: number
  type: "NotificationGroup"
  name: string | null
  _links?: Links
  eventSubscriptions: any[]
  notificationType: "SMTP_SERVICE" | "SNMP_TRAP_SERVICE"
  subjects?: any[] | null
  userDefinedFields: any
}

/** OAuthAuthorizationServer signs users in by OAuth 2.0. */
export type OAuthAuthorizationServer = {
  id: number
  type: "OAuthAuthorizationServer"
  name: string | null
  _links?: Links
  audience: string | null
  authorizationOption: "BASIC" | "POST" | null
  caCertificate: string | null
  clientId: string | null
  clientSecret?: string | null
  description: string | null
  emailClaim: string
  enabled: boolean
  groupClaim: string
  introspectionUrl: string | null
  issuer: string | null
  secondaryAuthenticator: Ref | null
  signingCertificate: string | null
  userClaim: string
  userDefinedFields: any
  userInfoUrl: string | null
  validationMethod: "AUTHORIZATION_SERVER" | "LOCAL"
}

/** Operation is one change of a transaction. Its name is what the resource is called, behind the change or, where it is gone, before it. */
export type Operation = {
  id: number
  type: "Operation"
  name: string | null
  _links?: Links
  fieldUpdates: any[] | null
  operationType: string | null
  resourceId: number
  resourceType: string | null
  userDefinedFields: any
}

/** PasswordPolicySettings says how passwords look. */
export type PasswordPolicySettings = {
  id: number
  type: "PasswordPolicySettings"
  name: string | null
  _links?: Links
  digitRequired: boolean
  enabled: boolean
  maxLength: number | null
  minLength: number | null
  mixedCaseRequired: boolean
  specialCharacterRequired: boolean
  userDefinedFields: any
}

/** PublishedInterface is how others see a server behind NAT: the name and the addresses that lead to it. */
export type PublishedInterface = {
  id: number
  type: "PublishedInterface"
  name: string | null
  _links?: Links
  configuration: Ref | null
  primaryAddress: string
  secondaryAddress: string | null
  server: Ref | null
  userDefinedFields: any
}

/** QuickDeployment carries what the user who asks for it has changed of the records of a zone, and of the others that its primary server writes. */
export type QuickDeployment = {
  id: number
  type: "QuickDeployment"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  creationDateTime: string | null
  message: string | null
  method: string | null
  percentComplete: number | null
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  status: "CANCEL" | null
  user: Ref | null
  userDefinedFields: any
}

/** RADIUSAuthenticator asks a RADIUS server. */
export type RADIUSAuthenticator = {
  id: number
  type: "RADIUSAuthenticator"
  name: string | null
  _links?: Links
  authenticationProtocol: "CHAP" | "PAP"
  hostname: string
  messageAuthenticatorRequired: boolean
  port: number
  retries: number
  secondaryAuthenticator: Ref | null
  sharedSecret?: string | null
  timeout: string
  userDefinedFields: any
}

/** ResourceImport is a file of resources, which are made and changed as its rows say. */
export type ResourceImport = {
  id: number
  type: "ResourceImport"
  name: string | null
  _links?: Links
  action: "CREATE_OR_UPDATE" | "CREATE" | "UPDATE"
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  deleted: number
  headers: any
  into: string | null
  message: string | null
  mode: "ROW_BY_ROW" | "ALL_OR_NOTHING" | "DRY_RUN"
  prune: boolean
  refused: number
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN"
  tag: string | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** ResourceRecordImport makes records in a zone. */
export type ResourceRecordImport = {
  id: number
  type: "ResourceRecordImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** ResourceRecordMove is the moving of a record to another name, and the record of it, as release 9.6 has it. */
export type ResourceRecordMove = {
  id: number
  type: "ResourceRecordMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** ResponsePolicy is a list of names and what is answered for them. */
export type ResponsePolicy = {
  id: number
  type: "ResponsePolicy"
  name: string | null
  _links?: Links
  configuration: Ref | null
  policyType: "ALLOWLIST" | "BLACKHOLE" | "BLOCKLIST" | "REDIRECT"
  redirectTarget: string | null
  ttl: number | null
  userDefinedFields: any
}

/** ResponsePolicyItem is one name of a response policy. */
export type ResponsePolicyItem = {
  id: number
  type: "ResponsePolicyItem"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** ResponsePolicyItemImport is a file of names for a response policy, one in each line. It starts at once. */
export type ResponsePolicyItemImport = {
  id: number
  type: "ResponsePolicyItemImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  message: string | null
  refused: number
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** ResponsePolicyZone tells resolvers to answer otherwise for some names. */
export type ResponsePolicyZone = {
  id: number
  type: "ResponsePolicyZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  feedCategories: any[] | null
  overridePolicyType: "ALLOWLIST" | "BLACKHOLE" | "BLOCKLIST" | "REDIRECT" | null
  overrideRefreshTime: string | null
  redirectTarget: string | null
  responsePolicy: Ref | null
  responsePolicyZoneType: "LOCAL" | "FEED" | "EXTERNAL"
  userDefinedFields: any
  view: Ref | null
}

/** SAMLIdentityProvider signs users in by SAML. */
export type SAMLIdentityProvider = {
  id: number
  type: "SAMLIdentityProvider"
  name: string | null
  _links?: Links
  description: string | null
  emailAttribute: string | null
  enabled: boolean
  entityId: string
  groupAttribute: string | null
  logoutUrl: string | null
  secondaryAuthenticator: Ref | null
  signOnUrl: string
  signingCertificate: string
  userDefinedFields: any
}

/** SAMLServiceProviderSettings says what the manager calls itself towards SAML identity providers. */
export type SAMLServiceProviderSettings = {
  id: number
  type: "SAMLServiceProviderSettings"
  name: string | null
  _links?: Links
  addressManagerAbsoluteName: string
  addressManagerFqdn: string
  consumeUrl: string | null
  contactEmail: string | null
  contactName: string | null
  encryptionEnabled: boolean
  keyStore?: string | null
  keyStorePassword?: string | null
  logoutUrl: string | null
  metadataUrl: string | null
  nameIdFormat: "UNSPECIFIED" | "EMAIL_ADDRESS" | "ENTITY" | "TRANSIENT" | "PERSISTENT" | "ENCRYPTED" | "X509_SUBJECTNAME" | "WIN_QUALIFIED_NAME" | "KERBEROS"
  organizationName: string | null
  organizationUrl: string | null
  password?: string | null
  pkcs12?: string | null
  serviceKey?: string | null
  signingEnabled: boolean
  userDefinedFields: any
}

/** SNMPService answers SNMP, and sends traps. */
export type SNMPService = {
  id: number
  type: "SNMPService"
  name: string | null
  _links?: Links
  contactEmail: string | null
  contactName: string | null
  description: string | null
  enabled: boolean
  location: string | null
  logLevel: "CRITICAL" | "ERROR" | "WARNING" | "INFO" | "DEBUG"
  manualOverrideEnabled: boolean
  pollingInterval: string | null
  serverVersion: string | null
  snmpv1: any
  snmpv2c: any
  snmpv3: any
  trapServers: any[]
  userDefinedFields: any
}

/** SRVRecord names a server of a service (RFC 2782). */
export type SRVRecord = {
  id: number
  type: "SRVRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  linkedRecord: Ref
  port: number
  priority: number
  recordType: string | null
  ttl: number | null
  userDefinedFields: any
  weight: number
}

/** SSHService lets people in. */
export type SSHService = {
  id: number
  type: "SSHService"
  name: string | null
  _links?: Links
  enabled: boolean
  serverVersion: string | null
  tacacsPlusAuthentication: any
  userDefinedFields: any
}

/** SSOEnforcementSettings says whether users may sign in by SAML alone. */
export type SSOEnforcementSettings = {
  id: number
  type: "SSOEnforcementSettings"
  name: string | null
  _links?: Links
  enabled: boolean
  localAdminUserCount: number | null
  localNonAdminUserCount: number | null
  nonSsoAuthenticatorCount: number | null
  nonSsoGroupCount: number | null
  samlIdentityProviderEnabled: boolean
  userDefinedFields: any
}

/** SVCBRecord binds a name of any service to where it is given. */
export type SVCBRecord = {
  id: number
  type: "SVCBRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  linkedRecord: Ref | null
  priority: number
  recordType: string | null
  serviceParameters: any
  ttl: number | null
  userDefinedFields: any
}

/** SelectiveDeployment carries some records. */
export type SelectiveDeployment = {
  id: number
  type: "SelectiveDeployment"
  name: string | null
  _links?: Links
  batchMode: "DISABLED" | "BATCH_BY_SERVER"
  completionDateTime: string | null
  continueOnFailureEnabled: boolean | null
  creationDateTime: string | null
  dynamicRecordDeploymentStrategy: "ABORT" | "SKIP" | "MAKE_STATIC"
  message: string | null
  method: string | null
  percentComplete: number | null
  recordScope: "RELATED" | "SPECIFIC"
  resources?: any[]
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  status: "CANCEL" | null
  user: Ref | null
  userDefinedFields: any
}

/** Server is a machine that answers for names, or gives out addresses. */
export type Server = {
  id: number
  type: "Server"
  name: string | null
  _links?: Links
  checkIntegrityValidation: "NONE" | "LOCAL" | "LOCAL_SIBLING" | "FULL" | "FULL_SIBLING"
  checkMxCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkMxValidation: "IGNORE" | "WARN" | "FAIL"
  checkNamesValidation: "IGNORE" | "WARN" | "FAIL"
  checkNsValidation: "IGNORE" | "WARN" | "FAIL"
  checkSrvCnameValidation: "IGNORE" | "WARN" | "FAIL"
  checkWildcardValidation: "IGNORE" | "WARN"
  configuration: Ref | null
  connected: boolean
  dedicatedManagementEnabled: boolean
  dhcpConfigurationValidationEnabled: boolean
  dhcpServicePrincipal: Ref | null
  dnsConfigurationValidationEnabled: boolean
  dnsServicePrincipal: Ref | null
  dnsZoneValidationEnabled: boolean
  encryptedNotificationsEnabled?: boolean | null
  haBackboneEnabled: boolean
  haDiskState: "DEGRADED" | "FAILOVER" | "HEALTHY" | "INITIALIZING" | "REPAIR" | "SYNCHRONIZING" | "UNKNOWN" | "UP_TO_DATE" | null
  haPeerConnectionState: "DEGRADED" | "FAILOVER" | "HEALTHY" | "INITIALIZING" | "REPAIR" | "SYNCHRONIZING" | "UNKNOWN" | "UP_TO_DATE" | null
  haPingAddress: string | null
  haRole: "NOT_AVAILABLE" | "PASSIVE" | "ACTIVE" | null
  hsmSupportEnabled: boolean
  interfaceRedundancyEnabled: boolean
  interfaces?: any[]
  location: Ref | null
  managementUrl: string | null
  monitoringEnabled: boolean | null
  overrideConfigurationLevelDhcpValidation: boolean
  overrideConfigurationLevelDnsValidation: boolean
  password?: string | null
  privateAddress: string | null
  profile: "ADONIS_XMB4" | "ADONIS_XMB3" | "ADONIS_XMB2" | "OTHER_DNS_SERVER" | "AFILIAS_DNS_SERVER" | "ADONIS_800" | "ADONIS_1200" | "ADONIS_1900" | "ADONIS_1950" | "DNS_DHCP_SERVER_20" | "DNS_DHCP_SERVER_45" | "DNS_DHCP_SERVER_60" | "DNS_DHCP_SERVER_100" | "DNS_DHCP_SERVER_100_D" | "LTM" | "GTM" | "DNS_DHCP_GEN4_7000" | "DNS_DHCP_GEN4_5000" | "DNS_DHCP_GEN4_4000" | "DNS_DHCP_GEN4_2000" | "CLOUD_DNS_SERVER"
  selfIpAddress: string | null
  serverGroup: Ref | null
  servicePoint: string | null
  serviceProviderAccount: string | null
  serviceProviderApiKey: string | null
  snmp: any
  state: "ENABLED" | "DISABLED" | "FAILOVER" | "RESET_CONTROL" | "REPAIR" | "DISABLE" | null
  statistics: any
  transferKey: Ref | null
  userDefinedFields: any
  username: string | null
}

/** ServerFile is a file of a server; none is shown. */
export type ServerFile = {
  id: number
  type: "ServerFile"
  name: string | null
  _links?: Links
  group: string | null
  modificationDateTime: string | null
  owner: string | null
  permissions: any[] | null
  size: number | null
  userDefinedFields: any
}

/** ServerGroup is a label of servers that carries their options, and that is deployed to as one. */
export type ServerGroup = {
  id: number
  type: "ServerGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  multiPrimary: boolean | null
  servers?: any[] | null
  userDefinedFields: any
}

/** ServerGroupInterface is the interface of a group whose servers write the same zones; there are no such groups. */
export type ServerGroupInterface = {
  id: number
  type: "ServerGroupInterface"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** ServerLog is a log of a server; those of service points are shown by the fleet. */
export type ServerLog = {
  id: number
  type: "ServerLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** ServerPatch is a patch for servers; none is taken. */
export type ServerPatch = {
  id: number
  type: "ServerPatch"
  name: string | null
  _links?: Links
  publicKey?: string | null
  userDefinedFields: any
}

/** ServerPatchApplication is the patching of a server. */
export type ServerPatchApplication = {
  id: number
  type: "ServerPatchApplication"
  name: string | null
  _links?: Links
  dateTime: string | null
  patch?: Ref | null
  userDefinedFields: any
  version: string | null
}

/** StartOfAuthority is what the SOA records of zones say: a list of time to live, primary server, mail address, serial (auto, date or a number), refresh, retry, expire and minimum; null in it is the default. */
export type StartOfAuthority = {
  id: number
  type: "StartOfAuthority"
  name: string | null
  _links?: Links
  code: number | null
  configuration: Ref | null
  definition: Ref | null
  resource: Ref | null
  serverScope: Ref | null
  userDefinedFields: any
  value: any
}

/** StartOfAuthorityDefinition is what is said of the start of authority of zones. */
export type StartOfAuthorityDefinition = {
  id: number
  type: "StartOfAuthorityDefinition"
  name: string | null
  _links?: Links
  assignableTypes: any[] | null
  code: number | null
  description: string | null
  displayName: string | null
  otherNames: any[] | null
  userDefinedFields: any
  valueFormat: any
}

/**  */
export type Status = {
  id: number
  type: "Status"
  name: string | null
  _links?: Links
  address: string
  alarms: any[]
  backups: any
  certificates: any[]
  database: any
  fleet: any
  freeBytes: any
  go: string
  history: any
  host: string
  incomplete: boolean
  indexes: any
  masterKey: boolean
  since: string
  space: any
  version: string
}

/** SyslogService sends what the machine logs. */
export type SyslogService = {
  id: number
  type: "SyslogService"
  name: string | null
  _links?: Links
  iso8601TimestampsEnabled: boolean | null
  manualOverrideEnabled: boolean
  serverVersion: string | null
  servers: any[]
  userDefinedFields: any
}

/** SystemLog is a log of the manager that answers: what it logs, and the access log and the audit log where it keeps them. It is fetched as it is (application/octet-stream). */
export type SystemLog = {
  id: number
  type: "SystemLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** SystemSettings says what the manager is. */
export type SystemSettings = {
  id: number
  type: "SystemSettings"
  name: string | null
  _links?: Links
  activeSessionCount: number | null
  activeSessions: number | null
  address: string | null
  hostname: string | null
  interfaceRedundancyEnabled: boolean
  userDefinedFields: any
  version: string | null
}

/** TACACSPlusAuthenticator asks a TACACS+ server. */
export type TACACSPlusAuthenticator = {
  id: number
  type: "TACACSPlusAuthenticator"
  name: string | null
  _links?: Links
  attributes: any[]
  authenticationProtocol: "CHAP" | "PAP"
  groupAttribute: string | null
  hostname: string
  port: number
  secondaryAuthenticator: Ref | null
  sharedSecret?: string | null
  timeout: string
  userDefinedFields: any
}

/** TFTPDeploymentRole says which server gives out the files of a TFTP group. */
export type TFTPDeploymentRole = {
  id: number
  type: "TFTPDeploymentRole"
  name: string | null
  _links?: Links
  configuration: Ref | null
  roleType: "TFTP" | null
  server: Ref
  userDefinedFields: any
}

/** TFTPFile is a file, which is sent and fetched as it is (multipart/form-data, application/octet-stream). */
export type TFTPFile = {
  id: number
  type: "TFTPFile"
  name: string | null
  _links?: Links
  configuration: Ref | null
  description: string | null
  md5Checksum: string | null
  sha256Checksum: string | null
  size: number
  userDefinedFields: any
  version: string | null
}

/** TFTPFolder holds files and folders. */
export type TFTPFolder = {
  id: number
  type: "TFTPFolder"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** TFTPGroup holds the files that machines load when they start. */
export type TFTPGroup = {
  id: number
  type: "TFTPGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** TSIGKey is a key that servers and clients sign messages with (RFC 8945). Its secret is shown once: in the answer to who made it. */
export type TSIGKey = {
  id: number
  type: "TSIGKey"
  name: string | null
  _links?: Links
  algorithm: "MD5" | "SHA1" | "SHA256" | "SHA512"
  configuration: Ref | null
  keyGenerationDateTime: string | null
  length: number
  privateKey?: string | null
  sharedSecret?: string | null
  state: "GENERATED" | "NOT_GENERATED" | "REGENERATE" | null
  userDefinedFields: any
}

/** TXTRecord holds text (RFC 1035 section 3.3.14). */
export type TXTRecord = {
  id: number
  type: "TXTRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  recordType: string | null
  text: string | null
  ttl: number | null
  userDefinedFields: any
}

/** Tag is a label for anything: below a group, or below another tag. */
export type Tag = {
  id: number
  type: "Tag"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** TagGroup holds tags of one kind, such as sites or owners. */
export type TagGroup = {
  id: number
  type: "TagGroup"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** Task is something that a user has to do. */
export type Task = {
  id: number
  type: "Task"
  name: string | null
  _links?: Links
  comment: string | null
  dueDateTime: string | null
  percentComplete: number
  priority: "ALL" | "LOW" | "NORMAL" | "HIGH"
  startDateTime: string | null
  state: "NOT_STARTED" | "IN_PROGRESS" | "COMPLETED" | "WAITING_FOR_OTHER" | "DEFERRED"
  userDefinedFields: any
}

/**  */
export type Token = {
  id: number
  type: "Token"
  name: string | null
  _links?: Links
  created: string
  expires: string
  kind: string
  lastUsed: string
  revoked: boolean
  role: string
  scopes: any[]
  user: string
}

/** Transaction is one change, as the history keeps it: all of it happened, at one moment. */
export type Transaction = {
  id: number
  type: "Transaction"
  name: string | null
  _links?: Links
  changedResources: boolean
  client: string | null
  comment: string | null
  creationDateTime: string | null
  credential: string | null
  description: string | null
  operation: string | null
  principal: string | null
  remoteAddress: string | null
  revertingTransaction: Ref | null
  transactionId?: number
  transactionType: "UNDO" | null
  undoes: number | null
  user: Ref | null
  userDefinedFields: any
}

/** TrustRelationship is the trust in another manager, which a database is copied to. */
export type TrustRelationship = {
  id: number
  type: "TrustRelationship"
  name: string | null
  _links?: Links
  address: string
  keyGenerationDateTime: string | null
  password?: string
  state: "TRUSTED" | "UNTRUSTED" | "REFRESH_KEYS" | null
  userDefinedFields: any
  username?: string
}

/** URIRecord is an address of the web for a name (RFC 7553). */
export type URIRecord = {
  id: number
  type: "URIRecord"
  name: string | null
  _links?: Links
  absoluteName: string | null
  comment: string | null
  configuration: Ref | null
  dynamic: boolean
  priority: number
  recordType: string | null
  target: string
  ttl: number | null
  userDefinedFields: any
  weight: number
}

/** User is a person or a program that signs in. */
export type User = {
  id: number
  type: "User"
  name: string | null
  _links?: Links
  accessType: "GUI" | "API" | "GUI_AND_API"
  accountLocked: boolean
  administrativeAccessLevels: any
  administrativeAccessRights: any[] | null
  authenticator: Ref | null
  email: string
  historyPrivilege: "HIDE" | "VIEW_HISTORY_LIST" | "ADMINISTRATOR"
  password?: string | null
  passwordResetRequired: boolean
  phoneNumber: string | null
  securityPrivilege: "NO_ACCESS" | "VIEW_MY_ACCESS_RIGHTS" | "VIEW_OTHERS_ACCESS_RIGHTS" | "CHANGE_ACCESS_RIGHTS" | "ADD_ACCESS_RIGHTS" | "DELETE_ACCESS_RIGHTS" | "ADMINISTRATOR"
  userDefinedFields: any
  x509Required: boolean
}

/** UserDefinedFieldDefinition defines a field of one's own that resources of a type have. */
export type UserDefinedFieldDefinition = {
  id: number
  type: "UserDefinedFieldDefinition"
  name: string | null
  _links?: Links
  dataType: "BOOLEAN" | "DATE" | "EMAIL" | "INTEGER" | "LONG" | "TEXT" | "URL" | "WORKFLOW"
  defaultValue: string | null
  displayName: string
  indexed: boolean | null
  predefinedValues: any[] | null
  required: boolean | null
  resourceType: "ACL" | "AbstractKeySigningKey" | "AbstractNetworkInterface" | "AbstractServer" | "AbstractZoneSigningKey" | "AddressManagerAuthenticator" | "AliasRecord" | "Authenticator" | "Configuration" | "DHCPClientOption" | "DHCPDeploymentRole" | "DHCPForwardZone" | "DHCPReverseZone" | "DHCPServiceOption" | "DHCPUniqueIdentifier" | "DHCPVendorOption" | "DHCPVendorOptionDefinition" | "DHCPZone" | "DHCPZoneGroup" | "DHCPv4ClientClass" | "DHCPv4ClientOption" | "DHCPv4CustomClientOptionDefinition" | "DHCPv4RawOption" | "DHCPv4ServiceOption" | "DHCPv4Subclass" | "DHCPv6ClientOption" | "DHCPv6RawOption" | "DHCPv6ServiceOption" | "DNS64" | "DNSDeploymentRole" | "DNSOption" | "DNSRawOption" | "DNSSECSigningPolicy" | "DefaultClientOption" | "DefaultDHCPOption" | "DefaultDHCPServiceOption" | "DefaultDNSOption" | "DeploymentRole" | "DeploymentSchedule" | "Device" | "DeviceSubtype" | "DeviceType" | "ENUMNumberZone" | "ENUMZone" | "EntrustKeySigningKey" | "EntrustZoneSigningKey" | "ExternalHostRecord" | "GenericRecord" | "HAServer" | "HINFORecord" | "HTTPSRecord" | "HSMConfiguration" | "HSMKeySigningKey" | "HSMServer" | "HSMZoneSigningKey" | "HostRecord" | "IPServerInterface" | "IPv4Address" | "IPv4Block" | "IPv4DHCPRange" | "IPv4Group" | "IPv4Network" | "IPv4Prefix" | "IPv4Range" | "IPv4ReconciliationPolicy" | "IPv4Template" | "IPv6Address" | "IPv6Block" | "IPv6DHCPRange" | "IPv6Network" | "IPv6Prefix" | "IPv6ReconciliationPolicy" | "InternalRootZone" | "KerberosAuthenticator" | "KerberosRealm" | "KerberosServicePrincipal" | "KeyDistributionCenter" | "KeySigningKey" | "LDAPAuthenticator" | "Location" | "LoginPolicySettings" | "MACAddress" | "MACPool" | "MXRecord" | "NAPTRRecord" | "NamingPolicy" | "NamingPolicyRestriction" | "NetworkInterface" | "NotificationGroup" | "OAuthAuthorizationServer" | "PasswordPolicySettings" | "PublishedInterface" | "RADIUSAuthenticator" | "RawOption" | "Report" | "ReportSchedule" | "ResourceRecord" | "ResponsePolicy" | "ResponsePolicyZone" | "SAMLIdentityProvider" | "SAMLServiceProviderSettings" | "SRVRecord" | "SVCBRecord" | "Server" | "ServerGroup" | "ServerInterface" | "ServiceOption" | "SigningKey" | "StartOfAuthority" | "TACACSPlusAuthenticator" | "TFTPDeploymentRole" | "TFTPFile" | "TFTPFolder" | "TFTPGroup" | "TFTPNode" | "TSIGKey" | "TXTRecord" | "URIRecord" | "Tag" | "TagGroup" | "Task" | "User" | "UserGroup" | "VendorProfile" | "View" | "VirtualInterface" | "X509Authenticator" | "Zone" | "ZoneSigningKey" | "ZoneTemplate"
  resourceTypes: any[] | null
  userDefinedFields: any
  validationProperties: any
}

/** UserDefinedLink is a link between two resources. It is shown as the resource at its other end. */
export type UserDefinedLink = {
  id: number
  type: "UserDefinedLink"
  name: string | null
  _links?: Links
  destination: Ref
  linkDefinition: Ref
  linkDescription: string | null
  source: Ref
  userDefinedFields: any
}

/** UserDefinedLinkDefinition defines a link of one's own between resources. */
export type UserDefinedLinkDefinition = {
  id: number
  type: "UserDefinedLinkDefinition"
  name: string | null
  _links?: Links
  description: string | null
  destinationTypes: any[]
  displayName: string
  sourceTypes: any[]
  userDefinedFields: any
}

/** UserDefinedLinkedResource is the resource at the other end of a link, and what is said of the link. */
export type UserDefinedLinkedResource = {
  id: number
  type: "UserDefinedLinkedResource"
  name: string | null
  _links?: Links
  linkDefinition: Ref
  linkDescription: string | null
  userDefinedFields: any
}

/** UserGroup is a group of users. */
export type UserGroup = {
  id: number
  type: "UserGroup"
  name: string | null
  _links?: Links
  administrativeAccessRights: any[] | null
  administratorPrivilege: boolean
  authenticator: Ref | null
  description: string | null
  groupType: "ADDRESS_MANAGER" | "LDAP" | "SSO" | "TACACS_PLUS"
  userDefinedFields: any
}

/** UserSession is the time between a user's login and logout. */
export type UserSession = {
  id: number
  type: "UserSession"
  name: string | null
  _links?: Links
  apiToken: string | null
  apiTokenExpirationDateTime: string | null
  authenticator: Ref | null
  basicAuthenticationCredentials: string | null
  loginDateTime: string | null
  logoutDateTime: string | null
  password?: string
  readOnly: boolean | null
  remoteAddress: string | null
  response: string | null
  signInCode?: string | null
  state: "LOGGED_IN" | "LOGGED_OUT" | "TIMED_OUT" | "EXPIRED" | "LOGIN_FAIL" | "TERMINATED" | null
  user: Ref | null
  userDefinedFields: any
  username?: string
}

/** ValidationDeployment checks what a server is to have, and carries nothing. */
export type ValidationDeployment = {
  id: number
  type: "ValidationDeployment"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  creationDateTime: string | null
  message: string | null
  method: string | null
  percentComplete: number | null
  service: "DNS" | "DHCPv4" | "DHCPv6"
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  status: "CANCEL" | null
  user: Ref | null
  userDefinedFields: any
}

/** VendorProfile is a maker of DHCP clients: what they call themselves in option 60, and which options are theirs. */
export type VendorProfile = {
  id: number
  type: "VendorProfile"
  name: string | null
  _links?: Links
  description: string
  identifier: string
  userDefinedFields: any
}

/** View is a namespace of DNS within a configuration: the same name may mean another thing in another view. */
export type View = {
  id: number
  type: "View"
  name: string | null
  _links?: Links
  configuration: Ref | null
  deviceRegistrationEnabled: boolean
  deviceRegistrationPortalAddress: string | null
  followedServer: Ref | null
  liveDeployment: boolean
  restrictedRanges?: any[] | null
  userDefinedFields: any
}

/** WebAccessSettings says how the manager's APIs are reached, which is said when it is started. */
export type WebAccessSettings = {
  id: number
  type: "WebAccessSettings"
  name: string | null
  _links?: Links
  authenticator: Ref | null
  caCertificates: any[] | null
  certificate: string | null
  httpEnabled: boolean
  httpToHttpsRedirectionEnabled: boolean
  httpsEnabled: boolean
  password?: string | null
  privateKey: string | null
  server: Ref | null
  userDefinedFields: any
}

/** Webhook sends what changes to a program that listens at a URL. */
export type Webhook = {
  id: number
  type: "Webhook"
  name: string | null
  _links?: Links
  collections: any[]
  deliveredDateTime: string | null
  enabled: boolean
  failures: number
  message: string | null
  parent: number | null
  secret?: string
  state: "RUNNING" | "FAILING" | "STOPPED" | "DISABLED" | null
  url: string
  userDefinedFields: any
}

/** WorkflowRequest is a change that somebody asked for, and others approve. */
export type WorkflowRequest = {
  id: number
  type: "WorkflowRequest"
  name: string | null
  _links?: Links
  comment: string | null
  creationDateTime: string | null
  creator: Ref | null
  decider: string | null
  decisionComment: string | null
  dependentRequest: Ref | null
  dependentResource: Ref | null
  description: string | null
  fieldUpdates: any[] | null
  modificationDateTime: string | null
  modifier: Ref | null
  operation: string | null
  principal: string | null
  requestType: "ADD_ZONE" | "ADD_IPV4_NETWORK" | "ASSIGN_IPV4_ADDRESS" | "ADD_HOST_RECORD" | "ADD_ALIAS_RECORD" | "ADD_RESOURCE_RECORD" | "UPDATE_ZONE" | "UPDATE_IPV4_NETWORK" | "UPDATE_READONLY_IPV4_NETWORK" | "UPDATE_IPV4_ADDRESS" | "CHANGE_IPV4_ADDRESS_STATE" | "UPDATE_HOST_RECORD" | "UPDATE_RESOURCE_RECORD" | "UPDATE_ALIAS_RECORD" | "RENAME_RESOURCE_RECORD" | "DELETE_RESOURCE" | null
  resource: Ref | null
  resourceId: number | null
  resourceType: string | null
  state: "PENDING" | "APPROVED" | "DENIED"
  userDefinedFields: any
}

/** X509Authenticator knows users by certificates that it asks a server about. */
export type X509Authenticator = {
  id: number
  type: "X509Authenticator"
  name: string | null
  _links?: Links
  caCertificates: any[]
  ldapUserMatchOption: "NONE" | "CUSTOM_USER_PREFIX_MATCH" | "STRICT_DN_MATCH"
  primaryServerUrl: string
  secondaryAuthenticator: Ref | null
  secondaryServerUrl: string | null
  userDefinedFields: any
}

/** Zone is a DNS zone within a view, below the view or below another zone. */
export type Zone = {
  id: number
  type: "Zone"
  name: string | null
  _links?: Links
  absoluteName: string | null
  configuration: Ref | null
  deploymentEnabled: boolean
  dynamicUpdateEnabled: boolean
  restrictedRanges?: any[] | null
  signed: boolean
  signingPolicy: Ref | null
  template: Ref | null
  userDefinedFields: any
  view: Ref | null
}

/** ZoneImport makes zones in a view. */
export type ZoneImport = {
  id: number
  type: "ZoneImport"
  name: string | null
  _links?: Links
  comment: string | null
  completionDateTime: string | null
  contentType: string | null
  created: number
  creationDateTime: string | null
  headers: any
  message: string | null
  refused: number
  resources?: any[] | null
  rows: number
  size: number
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_ERRORS" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  unchanged: number
  updated: number
  user: Ref | null
  userDefinedFields: any
}

/** ZoneMove is the moving of a zone to another name, and the record of it, as release 9.6 has it. */
export type ZoneMove = {
  id: number
  type: "ZoneMove"
  name: string | null
  _links?: Links
  destination: any
  source: any
  transaction: any
  userDefinedFields: any
}

/** ZoneSigningKey is a key that the records of a signed zone are signed with (RFC 6781). */
export type ZoneSigningKey = {
  id: number
  type: "ZoneSigningKey"
  name: string | null
  _links?: Links
  algorithm: "ECDSAP256SHA256" | "ECDSAP384SHA384" | "ED25519" | "ED448" | "RSAMD5" | "RSANSEC3SHA256" | "RSANSEC3SHA512" | "RSASHA1" | "RSASHA1NSEC3SHA1" | "RSASHA256" | "RSASHA512" | null
  configuration: Ref | null
  dnsKeyRecord: string | null
  flags: number | null
  keyExpirationDateTime: string | null
  keyGenerationDateTime: string | null
  keyProvider: string | null
  keyStartDateTime: string | null
  keyTag: number | null
  length: number | null
  privateKey?: string | null
  privateKeyEncoding: "PKCS8" | "X509" | null
  publicKey: string | null
  publicKeyEncoding: "PKCS8" | "X509" | null
  state: "GENERATED" | "NOT_GENERATED" | "REGENERATE" | null
  ttl: string | null
  userDefinedFields: any
}

/** ZoneTemplate holds records that zones are to have. */
export type ZoneTemplate = {
  id: number
  type: "ZoneTemplate"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** ZoneTemplateApplication is the applying of zone templates to zones, and the record of it. */
export type ZoneTemplateApplication = {
  id: number
  type: "ZoneTemplateApplication"
  name: string | null
  _links?: Links
  completionDateTime: string | null
  conflictResolutionStrategy: "USE_EXISTING" | "OVERWRITE" | "ABORT" | null
  startDateTime: string | null
  state: "PENDING" | "QUEUED" | "RUNNING" | "CANCELLED" | "CANCELLING" | "COMPLETED" | "COMPLETED_WITH_WARNINGS" | "FAILED" | "UNKNOWN" | null
  userDefinedFields: any
}
