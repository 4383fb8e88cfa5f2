// Made from the schema of the API by go generate ./console. Do not edit.
import type { Links, Ref } from "./api"

/** ACL is an access control list of name servers for queries, transfers, notifies or updates. The first matching element decides. */
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

/** AccessRight sets what a user, or the members of a group, may see and change. */
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

/** AddressManagerAuthenticator is the manager's own authenticator, which always exists. It checks passwords that the manager stores. */
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

/** AddressManagerServer is a machine to replicate the database to. */
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

/** AdministrativeAccessRight sets what a user, or the members of a group, may see of the manager itself. */
export type AdministrativeAccessRight = {
  id: number
  type: "AdministrativeAccessRight"
  name: string | null
  _links?: Links
  administrativeAccessRights: any[]
  userDefinedFields: any
  userScope: Ref
}

/** AliasRecord is an alias for another record (CNAME). */
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

/** AuditDataSettings sets how long the history and events are kept. */
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

/**  */
export type BackupRehearsal = {
  id: number
  type: "BackupRehearsal"
  name: string | null
  _links?: Links
  backup: number
  completionDateTime: any
  message: string
  rows: number
  startDateTime: any
  state: "NONE" | "RUNNING" | "PASSED" | "FAILED"
}

/** Configuration is the top of the address and name hierarchy. Configurations are independent of each other: their address space and names do not conflict. */
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

/** DHCPActivityService sends the beginnings and ends of leases of a DHCP server to a destination. */
export type DHCPActivityService = {
  id: number
  type: "DHCPActivityService"
  name: string | null
  _links?: Links
  destination: any
  dhcpv4Enabled: boolean
  dhcpv6Enabled: boolean
  enabled: boolean
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DHCPAlertSettings sets when the utilization of IPv4 DHCP ranges raises an event. Its marks apply to ranges without marks of their own, of their network or of a block above. */
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

/** DHCPClientIdentifier is the identifier that a DHCPv4 client sends (RFC 2132 section 9.14). */
export type DHCPClientIdentifier = {
  id: number
  type: "DHCPClientIdentifier"
  name: string | null
  _links?: Links
  configuration: Ref | null
  uid: any
  userDefinedFields: any
}

/** DHCPDeploymentRole assigns the interfaces that serve the addresses of a block or network: a primary one and an optional failover peer. */
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

/** DHCPForwardZone defines the servers for updates of client names in a zone. */
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

/** DHCPPartner is a failover pair of a DHCP server, as the server reports it. */
export type DHCPPartner = {
  id: number
  type: "DHCPPartner"
  name: string | null
  _links?: Links
  clockDifference: number
  configuration: Ref | null
  conflicts: number
  connected: boolean
  keyFingerprint: string | null
  lastContactDateTime: string | null
  mclt: number
  partner: Ref | null
  pendingUpdates: number
  port: number
  reportDateTime: string | null
  state: string | null
  stateDateTime: string | null
  userDefinedFields: any
}

/** DHCPPartnerAction is a declaration of a user about the failover partner of a server. */
export type DHCPPartnerAction = {
  id: number
  type: "DHCPPartnerAction"
  name: string | null
  _links?: Links
  action: "PARTNER_DOWN"
  configuration: Ref | null
  creationDateTime: string | null
  force: boolean
  partner: Ref
  state: "PENDING" | "DECLARED" | "DONE" | "NO_EFFECT" | null
  userDefinedFields: any
}

/** DHCPReverseZone defines the servers for updates of the names of addresses in a prefix. */
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

/** DHCPStatisticsService sends statistics of DHCP servers. */
export type DHCPStatisticsService = {
  id: number
  type: "DHCPStatisticsService"
  name: string | null
  _links?: Links
  destination: any
  dhcpv4Enabled: boolean
  dhcpv6Enabled: boolean
  enabled: boolean
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DHCPUniqueIdentifier is the DUID that a DHCPv6 client sends (RFC 8415 section 11). */
export type DHCPUniqueIdentifier = {
  id: number
  type: "DHCPUniqueIdentifier"
  name: string | null
  _links?: Links
  configuration: Ref | null
  duid: string
  userDefinedFields: any
}

/** DHCPVendorOption is an option of a vendor, which is sent to the vendor's clients within option 43. */
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

/** DHCPVendorOptionDefinition defines an option of a vendor, which is a part of option 43. */
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

/** DHCPZoneGroup defines for a group of DHCP servers where the names of clients are updated in DNS, and how the updates are signed. */
export type DHCPZoneGroup = {
  id: number
  type: "DHCPZoneGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** DHCPv4ClientClass is a class of DHCPv4 clients. Clients belong to it by a part of an option that they send, or by an expression. */
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

/** DHCPv4ClientOption is an option that is sent to DHCPv4 clients. */
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

/** DHCPv4ClientOptionDefinition defines an option that a DHCPv4 server sends to clients. */
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

/** DHCPv4CustomClientOptionDefinition defines a custom option that a DHCPv4 server sends to clients. */
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

/** DHCPv4Lease is the lease of an IPv4 address to a client. */
export type DHCPv4Lease = {
  id: number
  type: "DHCPv4Lease"
  name: string | null
  _links?: Links
  address: string | null
  circuitId: string | null
  clientIdentifier: string | null
  configuration: Ref | null
  hostName: string | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  macAddress: string | null
  network: Ref | null
  parameterRequestList: any[] | null
  remoteId: string | null
  server: Ref | null
  serverConnectionStatus: "CONNECTED" | "NOT_CONNECTED" | null
  state: "DHCP_ALLOCATED" | "DHCP_LEASED" | "DHCP_FREE" | "DHCP_ABANDONED" | null
  userDefinedFields: any
  vendorClassIdentifier: string | null
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

/** DHCPv4ServiceOptionDefinition defines a setting of a DHCPv4 server. */
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

/** DHCPv4Subclass contains the clients of a class that send a specific value. */
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

/** DHCPv6ClientOption is an option that is sent to DHCPv6 clients. */
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

/** DHCPv6ClientOptionDefinition defines an option that a DHCPv6 server sends to clients. */
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

/** DHCPv6Lease is the lease of an IPv6 address or prefix to a client. */
export type DHCPv6Lease = {
  id: number
  type: "DHCPv6Lease"
  name: string | null
  _links?: Links
  address: string | null
  clientIdentifier: string | null
  configuration: Ref | null
  hostName: string | null
  identityAssociationIdentifier: string | null
  interfaceId: string | null
  leaseDateTime: string | null
  leaseExpirationDateTime: string | null
  macAddress: string | null
  network: Ref | null
  prefix: string | null
  prefixLength: number | null
  remoteId: string | null
  server: Ref | null
  serverConnectionStatus: "CONNECTED" | "NOT_CONNECTED" | null
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

/** DHCPv6ServiceOptionDefinition defines a setting of a DHCPv6 server. */
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

/** DNSActivityService sends the queries and responses of name servers. */
export type DNSActivityService = {
  id: number
  type: "DNSActivityService"
  name: string | null
  _links?: Links
  destination: any
  enabled: boolean
  filters: any[]
  maximumBufferedEvents: number
  serverVersion: string | null
  userDefinedFields: any
}

/** DNSDeploymentRole assigns interfaces to a view, a zone, or the reverse zones of a block or network, with the role of their servers. */
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

/** DNSMove moves a zone or record to another name. It is kept as a record of the operation. */
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

/** DNSOptionDefinition defines a setting of a name server. */
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

/** DNSResolverService sets the name servers that the machine itself queries. */
export type DNSResolverService = {
  id: number
  type: "DNSResolverService"
  name: string | null
  _links?: Links
  serverVersion: string | null
  servers: any[]
  userDefinedFields: any
}

/** DNSSECSigningPolicy defines the keys and signatures of signed zones: algorithms, validity periods and key rollover. */
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

/** DNSStatisticsService sends statistics of name servers. */
export type DNSStatisticsService = {
  id: number
  type: "DNSStatisticsService"
  name: string | null
  _links?: Links
  destination: any
  enabled: boolean
  maximumBufferedEvents: number
  pollingInterval: string
  serverVersion: string | null
  userDefinedFields: any
}

/** DatabaseBackupFile is a backup of the database: a file on the machine of the manager that made it or received it. portolan restore reads it. It is uploaded and downloaded unchanged (multipart/form-data, application/octet-stream). */
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

/** DatabaseLog is a log of the database. There are none: all messages are in the manager's log. */
export type DatabaseLog = {
  id: number
  type: "DatabaseLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** DenyMACPool is the set of hardware addresses that no range serves. Every configuration has one. */
export type DenyMACPool = {
  id: number
  type: "DenyMACPool"
  name: string | null
  _links?: Links
  configuration: Ref | null
  instantDeploymentEnabled: boolean
  userDefinedFields: any
}

/** DeploymentRoleMove moves the roles of a server to another interface, and is the record of the move. */
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

/** Device is a machine that has addresses. */
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

/** DeviceSubtype is a more specific kind of device, such as a model of a manufacturer. */
export type DeviceSubtype = {
  id: number
  type: "DeviceSubtype"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** DeviceType is a manufacturer or a kind of device. */
export type DeviceType = {
  id: number
  type: "DeviceType"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/**  */
export type DhcpExplanation = {
  id: number
  type: "DhcpExplanation"
  name: string | null
  _links?: Links
  address: any
  classes: any[]
  leaseTime: any
  network: any
  options: any[]
  planned: boolean
  prefixLength: any
  range: any
  reason: any
  reply: any
  reservation: any
  server: any
  steps: any[]
}

/** DifferentialDeployment deploys the changes of the records in a server's zones since the last deployment. */
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

/** DiscoveredARPEntry is an entry in the ARP table of a router. */
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

/** DiscoveredHost is a host that answered. */
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

/** DiscoveredMACAddress is a hardware address that a switch has learned. */
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

/** DiscoveredNetwork is a network that is attached to a router. */
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

/** DiscoveredRouter is a router that answered. */
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

/** DiscoveredSwitch is a switch that answered. */
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

/**  */
export type DnsLookup = {
  id: number
  type: "DnsLookup"
  name: string | null
  _links?: Links
  additional: any[]
  answers: any[]
  authority: any[]
  flags: any[]
  milliseconds: number
  protocol: "udp" | "tcp"
  reason: string
  recordType: string
  server: string
  status: string
}

/** ENUMNumberZone is a telephone number, or a prefix of numbers, below an ENUM zone. The name consists of its digits in reverse order. */
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

/** ENUMZone is a zone for telephone numbers as names (RFC 6116), such as e164.arpa. */
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

/** Event is a record of something that happened, such as a deployment, an alarm or a job of the manager. */
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

/** ExternalHostRecord is the name of a host of another organization. Other records can link to it. It is not served. */
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

/** ExternalHostsZone contains the names of hosts of other organizations. Every view has one. */
export type ExternalHostsZone = {
  id: number
  type: "ExternalHostsZone"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
  view: Ref | null
}

/** FailoverAPIService lets another manager take over; servers do not have it. */
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

/**  */
export type Figures = {
  id: number
  type: "Figures"
  name: string | null
  _links?: Links
  from: string
  metrics: any[]
  object: string
  step: number
  to: string
}

/** FirewallService sets the traffic that the machine accepts. */
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

/** FleetRight sets what a user, or the members of a group, may do with the service points that have certain labels. Administrators, and users who see everything, see all service points without it. Portolan extension. */
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

/** FullDeployment deploys the complete content of a server. */
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

/** GenericRecord is a record of any other DNS type, with its data in zone-file syntax. */
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

/** GlobalSettings are settings that apply to all users. */
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

/** HAServer is a pair of servers: an active one that serves, and a passive one as its standby. */
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
  profile: "ADONIS_XMB4" | "ADONIS_XMB3" | "ADONIS_XMB2" | "OTHER_DNS_SERVER" | "AFILIAS_DNS_SERVER" | "ADONIS_800" | "ADONIS_1200" | "ADONIS_1900" | "ADONIS_1950" | "DNS_DHCP_SERVER_20" | "DNS_DHCP_SERVER_45" | "DNS_DHCP_SERVER_60" | "DNS_DHCP_SERVER_100" | "DNS_DHCP_SERVER_100_D" | "LTM" | "GTM" | "DNS_DHCP_GEN4_7000" | "DNS_DHCP_GEN4_5000" | "DNS_DHCP_GEN4_4000" | "DNS_DHCP_GEN4_2000" | "CLOUD_DNS_SERVER" | "PORTOLAN_SERVICE_POINT" | null
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

/** HINFORecord describes a host (RFC 1035 section 3.3.2). */
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

/** HTTPSRecord is the binding of an HTTP service. */
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

/** HostRecord contains the addresses of a host. It is served as A and AAAA records, and as PTR records if reverseRecord is set. */
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

/** IPMove moves an address, or a block or network with its content. It is kept as a record of the operation. */
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
  lastSeenDateTime: string | null
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

/** IPv4AddressImport imports addresses into a network. */
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

/** IPv4AddressMove moves an IPv4 address. It is kept as a record of the operation. */
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

/** IPv4Block is a range of IPv4 address space that contains blocks and networks. */
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
  range: string
  restrictedZones?: any[] | null
  restrictedZonesInherited: boolean
  reverseZoneSigned: boolean
  reverseZoneSigningPolicy: Ref | null
  template: Ref | null
  usagePercentage: any
  userDefinedFields: any
}

/** IPv4BlockImport imports blocks into a block. */
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

/** IPv4BlockMerge merges blocks into one. It is kept as a record of the operation. */
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

/** IPv4BlockMove moves an IPv4 block with its content. It is kept as a record of the operation. */
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

/** IPv4BlockSplit splits a block in two. It is kept as a record of the operation. */
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

/** IPv4DHCPRange is a range of addresses that a DHCP server assigns. */
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
  utilization: any
}

/** IPv4DHCPRangeMerge merges DHCP ranges into one. It is kept as a record of the operation. */
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

/** IPv4DHCPRangeTemplateItem is the position of a DHCP range. */
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

/** IPv4GatewayTemplateItem is the position of the gateway. */
export type IPv4GatewayTemplateItem = {
  id: number
  type: "IPv4GatewayTemplateItem"
  name: string | null
  _links?: Links
  rangeDefinitionFormat: "OFFSET_SIZE_FROM_START" | "OFFSET_SIZE_FROM_END"
  startOffset: number
  userDefinedFields: any
}

/** IPv4Group is a named part of a network. */
export type IPv4Group = {
  id: number
  type: "IPv4Group"
  name: string | null
  _links?: Links
  configuration: Ref | null
  range: string
  userDefinedFields: any
}

/** IPv4GroupTemplateItem is the position of an IP group. */
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
  vlan: Ref | null
}

/** IPv4NetworkImport imports networks into a block. */
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

/** IPv4NetworkMerge merges networks into one. It is kept as a record of the operation. */
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

/** IPv4NetworkMove moves an IPv4 network with its content. It is kept as a record of the operation. */
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

/** IPv4NetworkSplit splits a network into equal parts. It is kept as a record of the operation. */
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

/** IPv4ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database. */
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
  neighborBoundaries: any[] | null
  neighborLimit: number
  networkBoundaries: any[] | null
  nextDateTime: string | null
  notSeenDays: number
  overrides: any[] | null
  packetsPerSecond: number
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
  vlanTablesEnabled: boolean
}

/** IPv4ReservedRangeTemplateItem is a range of reserved addresses. */
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

/** IPv4Template is a layout for networks. Its items place the gateway, reserved addresses, DHCP ranges and IP groups at offsets within a network. */
export type IPv4Template = {
  id: number
  type: "IPv4Template"
  name: string | null
  _links?: Links
  configuration: Ref | null
  templateItems?: any[] | null
  userDefinedFields: any
}

/** IPv4TemplateApplication applies IPv4 templates to networks. It is kept as a record of the operation. */
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
  lastSeenDateTime: string | null
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

/** IPv6AddressImport imports addresses into a network. */
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

/** IPv6AddressMove moves an IPv6 address. It is kept as a record of the operation. */
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

/** IPv6Block is a range of IPv6 address space that contains blocks and networks. */
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

/** IPv6BlockImport imports blocks into a block. */
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

/** IPv6BlockMove moves an IPv6 block with its content. It is kept as a record of the operation. */
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

/** IPv6DHCPRange is a range of addresses that a DHCPv6 server assigns. */
export type IPv6DHCPRange = {
  id: number
  type: "IPv6DHCPRange"
  name: string | null
  _links?: Links
  configuration: Ref | null
  range: string
  usage: any
  userDefinedFields: any
  utilization: any
}

/** IPv6Network is an IPv6 subnet: a leaf of the address tree that holds addresses and ranges. */
export type IPv6Network = {
  id: number
  type: "IPv6Network"
  name: string | null
  _links?: Links
  configuration: Ref | null
  defaultZones?: any[] | null
  dynamicUpdateEnabled: boolean
  location: Ref | null
  range: string
  restrictedZones?: any[] | null
  userDefinedFields: any
  vlan: Ref | null
}

/** IPv6NetworkImport imports networks into a block. */
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

/** IPv6NetworkMove moves an IPv6 network with its content. It is kept as a record of the operation. */
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

/** IPv6ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database. */
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
  neighborBoundaries: any[] | null
  neighborLimit: number
  nextDateTime: string | null
  notSeenDays: number
  packetsPerSecond: number
  seedRouterAddresses: any[] | null
  skipFqdnEnabled: boolean
  snmp: any
  startDateTime: string
  trunkDefaultVlan: number
  userDefinedFields: any
  vlanTablesEnabled: boolean
}

/** ImportLog is the log of an import: messages about its rows. */
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

/** InterfacesService sets the addresses and routes of the machine. */
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

/** InternalRootZone is the internal root zone of a view. A view has at most one. */
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

/** KerberosAuthenticator authenticates users against a Kerberos realm. */
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

/** KerberosRealm is a Kerberos realm for the authentication of servers and DHCP updates. */
export type KerberosRealm = {
  id: number
  type: "KerberosRealm"
  name: string | null
  _links?: Links
  configuration: Ref | null
  domain: string
  userDefinedFields: any
}

/** KerberosServicePrincipal is the name of a service in a realm. */
export type KerberosServicePrincipal = {
  id: number
  type: "KerberosServicePrincipal"
  name: string | null
  _links?: Links
  keyVersionNumber: number
  password?: string
  userDefinedFields: any
}

/** KeyDistributionCenter is a server that issues the tickets of a realm. */
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

/** KeySigningKey is a key that signs the keys of a zone (RFC 6781). */
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

/** LDAPAuthenticator authenticates users against an LDAP directory. */
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

/** LeaseAction is an action on the lease of an address. */
export type LeaseAction = {
  id: number
  type: "LeaseAction"
  name: string | null
  _links?: Links
  action: "END_LEASE" | "CLEAR_ADDRESS" | "RESERVE"
  address: string
  configuration: Ref | null
  creationDateTime: string | null
  leaseDateTime: string | null
  reservation: Ref | null
  state: "PENDING" | "DONE" | "NO_EFFECT" | null
  userDefinedFields: any
}

/** LeaseSpan is the time during which a client had an address. Spans are kept for the dhcpTransactionRetentionPeriod of AuditDataSettings. */
export type LeaseSpan = {
  id: number
  type: "LeaseSpan"
  name: string | null
  _links?: Links
  address: string | null
  circuitId: string | null
  clientIdentifier: string | null
  configuration: Ref | null
  endDateTime: string | null
  endReason: "EXPIRED" | "RELEASED" | "DECLINED" | "CONFLICT" | "REPLACED" | "ENDED" | null
  hostName: string | null
  macAddress: string | null
  network: Ref | null
  prefix: string | null
  remoteId: string | null
  server: Ref | null
  startDateTime: string | null
  userDefinedFields: any
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

/** Location is a country, which is created with the database, or a place below a country or another place. */
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

/** LogLevelSettings sets the log level of each part of the manager. A change takes effect at once. It is rejected where the command line sets the level (--log-level). */
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

/** LoginPolicySettings sets how repeated failed sign-ins are delayed. */
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

/** MACPool is a set of hardware addresses that DHCP ranges allow or deny by their options. A hardware address is in at most one pool. */
export type MACPool = {
  id: number
  type: "MACPool"
  name: string | null
  _links?: Links
  configuration: Ref | null
  instantDeploymentEnabled: boolean
  userDefinedFields: any
}

/** MXRecord is a mail exchanger of a name (RFC 5321). */
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

/** MonitoringSettings sets what is monitored, and how often. */
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

/** NAPTRRecord is a rule that rewrites a name (RFC 3403). */
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

/** NTPService sets the time servers of the machine. */
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

/** NamingPolicy defines the names allowed in views and zones. A name is the concatenation of the policy's values, and must not match its restrictions. */
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

/** NamingPolicyConnectorValue is a fixed text between other parts. */
export type NamingPolicyConnectorValue = {
  id: number
  type: "NamingPolicyConnectorValue"
  name: string | null
  _links?: Links
  connector: string
  userDefinedFields: any
}

/** NamingPolicyIncrementalValue is a running number. A new name with "#" in this position gets the next number. */
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

/** NamingPolicyIntegerValue is a number in a range. */
export type NamingPolicyIntegerValue = {
  id: number
  type: "NamingPolicyIntegerValue"
  name: string | null
  _links?: Links
  max: number | null
  min: number | null
  userDefinedFields: any
}

/** NamingPolicyRequiredValue is one of several texts. */
export type NamingPolicyRequiredValue = {
  id: number
  type: "NamingPolicyRequiredValue"
  name: string | null
  _links?: Links
  elements: any[]
  userDefinedFields: any
}

/** NamingPolicyRestriction lists texts that names must not be or contain. */
export type NamingPolicyRestriction = {
  id: number
  type: "NamingPolicyRestriction"
  name: string | null
  _links?: Links
  restrictions: any[]
  userDefinedFields: any
}

/** NamingPolicyTextValue is a text with a limited length, or a text that matches a regular expression. */
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

/** NetworkInterface is the network interface of a server. It is created, changed and deleted with the server. */
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

/** NotificationGroup receives notifications of events: its users and the members of its groups by mail, or the receivers of SNMP traps. */
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

/** OAuthAuthorizationServer authenticates users by OAuth 2.0 tokens. */
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

/** Observation is the last observation of an address in the network. It has no history. Portolan extension. */
export type Observation = {
  id: number
  type: "Observation"
  name: string | null
  _links?: Links
  address: string | null
  configuration: Ref | null
  firstSeenDateTime: string | null
  hostName: string | null
  lastSeenDateTime: string | null
  macAddress: string | null
  methods: any[] | null
  network: Ref | null
  policy: Ref | null
  router: string | null
  routerPort: string | null
  switch: string | null
  switchPort: string | null
  userDefinedFields: any
  vlan: number | null
}

/** Operation is the change of one resource in a transaction. Its name is that of the resource after the change or, for a deletion, before it. */
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

/** PasswordPolicySettings sets the requirements for passwords. */
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

/**  */
export type Preference = {
  id: number
  type: "Preference"
  name: string | null
  _links?: Links
  changed: string
  value: any
}

/** PublishedInterface is the name and the addresses of a server as seen from the other side of NAT. */
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

/** QuickDeployment deploys the changes that its user has made to the records of a zone, and of the other zones of the same primary server. */
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

/** RADIUSAuthenticator authenticates users against a RADIUS server. */
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

/** ReconciliationFinding is a difference between the network and the database. A run of the policy creates findings, and deletes those that are resolved. A PATCH of the state accepts or rejects a finding. Portolan extension. */
export type ReconciliationFinding = {
  id: number
  type: "ReconciliationFinding"
  name: string | null
  _links?: Links
  address: string | null
  change: string | null
  configuration: Ref | null
  kind: "UNKNOWN_ADDRESS" | "NOT_SEEN" | "MAC_ADDRESS_DIFFERS" | "HOST_NAME_DIFFERS" | "UNKNOWN_NETWORK" | null
  network: Ref | null
  place: string | null
  policy: Ref | null
  seenHostName: string | null
  seenMacAddress: string | null
  sinceDateTime: string | null
  state: "OPEN" | "ACCEPTED" | "REJECTED"
  storedHostNames: any[] | null
  storedMacAddress: string | null
  userDefinedFields: any
}

/** ReconciliationRun is a run of a policy. A POST starts a run outside of the schedule. The last 20 runs of a policy are kept. Portolan extension. */
export type ReconciliationRun = {
  id: number
  type: "ReconciliationRun"
  name: string | null
  _links?: Links
  configuration: Ref | null
  creationDateTime: string | null
  devices: number
  endDateTime: string | null
  findings: number
  messages: any[] | null
  pinged: number
  policy: Ref | null
  seen: number
  state: "QUEUED" | "DONE" | "FAILED" | null
  userDefinedFields: any
}

/** RefusedClient is a client that a DHCP server did not answer, or answered with a NAK, for a reason. The last 100 clients of a network are kept for seven days. */
export type RefusedClient = {
  id: number
  type: "RefusedClient"
  name: string | null
  _links?: Links
  circuitId: string | null
  clientIdentifier: string | null
  configuration: Ref | null
  count: number
  explanation: string | null
  firstDateTime: string | null
  hostName: string | null
  lastDateTime: string | null
  macAddress: string | null
  messageType: string | null
  network: Ref | null
  reason: string | null
  relayAddress: string | null
  remoteId: string | null
  requestedAddress: string | null
  server: Ref | null
  userDefinedFields: any
  vendorClassIdentifier: string | null
}

/** RefusedCount is the number of messages that a DHCP server refused on a day for a reason. Numbers are kept for seven days. */
export type RefusedCount = {
  id: number
  type: "RefusedCount"
  name: string | null
  _links?: Links
  configuration: Ref | null
  count: number
  dateTime: string | null
  explanation: string | null
  network: Ref | null
  reason: string | null
  server: Ref | null
  userDefinedFields: any
}

/** ResourceImport is an import of a file whose rows create and change resources. */
export type ResourceImport = {
  id: number
  type: "ResourceImport"
  name: string | null
  _links?: Links
  action: "CREATE_OR_UPDATE" | "CREATE" | "UPDATE"
  columns: any
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
  resourceType: string | null
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

/** ResourceRecordImport imports resource records into a zone. */
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

/** ResourceRecordMove moves a record to another name, as in release 9.6. It is kept as a record of the operation. */
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

/** ResponsePolicy is a list of names with a common response. */
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

/** ResponsePolicyItem is a name in a response policy. */
export type ResponsePolicyItem = {
  id: number
  type: "ResponsePolicyItem"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** ResponsePolicyItemImport is an import of a file of names into a response policy, one name in each line. It starts at once. */
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

/** ResponsePolicyZone changes the responses of resolvers for some names. */
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

/** SAMLIdentityProvider authenticates users by SAML 2.0. */
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

/** SAMLServiceProviderSettings describes the manager to SAML identity providers. */
export type SAMLServiceProviderSettings = {
  id: number
  type: "SAMLServiceProviderSettings"
  name: string | null
  _links?: Links
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

/** SNMPService answers SNMP queries, and sends traps. */
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

/** SRVRecord is a server of a service (RFC 2782). */
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

/** SSHService allows sign-in over SSH. */
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

/** SSOEnforcementSettings restricts sign-in to SAML. */
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

/** SVCBRecord is the binding of a service of any kind. */
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

/** SelectiveDeployment deploys selected records. */
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

/** Server is a machine that serves DNS or DHCP. */
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
  profile: "ADONIS_XMB4" | "ADONIS_XMB3" | "ADONIS_XMB2" | "OTHER_DNS_SERVER" | "AFILIAS_DNS_SERVER" | "ADONIS_800" | "ADONIS_1200" | "ADONIS_1900" | "ADONIS_1950" | "DNS_DHCP_SERVER_20" | "DNS_DHCP_SERVER_45" | "DNS_DHCP_SERVER_60" | "DNS_DHCP_SERVER_100" | "DNS_DHCP_SERVER_100_D" | "LTM" | "GTM" | "DNS_DHCP_GEN4_7000" | "DNS_DHCP_GEN4_5000" | "DNS_DHCP_GEN4_4000" | "DNS_DHCP_GEN4_2000" | "CLOUD_DNS_SERVER" | "PORTOLAN_SERVICE_POINT"
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

/** ServerFile is a file of a server; the collection is always empty. */
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

/** ServerGroup is a group of servers that share options and are deployed together. */
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

/** ServerGroupInterface is the interface of a group whose servers write the same zones; such groups do not exist. */
export type ServerGroupInterface = {
  id: number
  type: "ServerGroupInterface"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** ServerLog is a log of a server. The collection is always empty; the fleet shows the logs of service points. */
export type ServerLog = {
  id: number
  type: "ServerLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** ServerPatch is a patch for servers; every patch is rejected. */
export type ServerPatch = {
  id: number
  type: "ServerPatch"
  name: string | null
  _links?: Links
  publicKey?: string | null
  userDefinedFields: any
}

/** ServerPatchApplication is the application of a patch to a server; every one is rejected. */
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

/**  */
export type SpaceForecast = {
  id: number
  type: "SpaceForecast"
  name: string | null
  _links?: Links
  filling: any[]
  fullest: any[]
  since: string
}

/** StartOfAuthority sets the contents of the SOA records of zones. Its value is a list of eight: time to live, primary server, mail address, serial (auto, date or a number), refresh, retry, expire and minimum. A null entry means the default. */
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

/** StartOfAuthorityDefinition defines the start of authority of zones. */
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

/** SyslogService sends the log of the machine to syslog servers. */
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

/** SystemLog is a log of the manager that answers the request: its own log, or the access log or audit log if these are written to files. Its content is downloaded as application/octet-stream. */
export type SystemLog = {
  id: number
  type: "SystemLog"
  name: string | null
  _links?: Links
  modificationDateTime: string | null
  size: number | null
  userDefinedFields: any
}

/** SystemSettings describes the manager itself. */
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

/** TACACSPlusAuthenticator authenticates users against a TACACS+ server. */
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

/** TFTPDeploymentRole assigns the server that serves the files of a TFTP group. */
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

/** TFTPFile is a file. It is uploaded as multipart/form-data and downloaded as application/octet-stream. */
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

/** TFTPFolder is a folder of files and folders. */
export type TFTPFolder = {
  id: number
  type: "TFTPFolder"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** TFTPGroup is a group of files that machines download when they start. */
export type TFTPGroup = {
  id: number
  type: "TFTPGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** TSIGKey is a key that servers and clients use to sign messages (RFC 8945). Only the response to the request that created the secret contains it. */
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
  state: "GENERATED" | "NOT_GENERATED" | "REGENERATE" | null
  userDefinedFields: any
}

/** TXTRecord is a text (RFC 1035 section 3.3.14). */
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

/** Tag is a label for any resource. It is in a tag group or below another tag. */
export type Tag = {
  id: number
  type: "Tag"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** TagGroup is a group of tags of one kind, such as sites or owners. */
export type TagGroup = {
  id: number
  type: "TagGroup"
  name: string | null
  _links?: Links
  userDefinedFields: any
}

/** Task is an entry in a user's to-do list. */
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

/** Transaction is one change in the history. All of its operations were committed together. */
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

/** TrustRelationship is the trust in another manager that the database is replicated to. */
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

/** URIRecord is a URI for a name (RFC 7553). */
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

/** UserDefinedFieldDefinition defines a user-defined field of the resources of a type. */
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

/** UserDefinedLink is a link between two resources. The API shows it as the resource at its other end. */
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

/** UserDefinedLinkDefinition defines a kind of link between resources. */
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

/** UserDefinedLinkedResource is the resource at the other end of a link, with the description and definition of the link. */
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

/** VLAN is a virtual LAN (IEEE 802.1Q) of a group. Networks refer to it. Portolan extension. */
export type VLAN = {
  id: number
  type: "VLAN"
  name: string | null
  _links?: Links
  configuration: Ref | null
  description: string | null
  number: number | null
  userDefinedFields: any
  vlanGroup: Ref | null
}

/** VLANGroup is a set of VLANs with unique numbers, such as those of a site or a switched domain. Portolan extension. */
export type VLANGroup = {
  id: number
  type: "VLANGroup"
  name: string | null
  _links?: Links
  configuration: Ref | null
  description: string | null
  firstNumber: number
  lastNumber: number
  location: Ref | null
  userDefinedFields: any
}

/** ValidationDeployment checks the content of a server, and deploys nothing. */
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

/** VendorProfile is a vendor of DHCP clients: the identifier that its clients send in option 60, and its options. */
export type VendorProfile = {
  id: number
  type: "VendorProfile"
  name: string | null
  _links?: Links
  description: string
  identifier: string
  userDefinedFields: any
}

/** View is a DNS namespace within a configuration. The same name may have different records in different views. */
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

/** WebAccessSettings describes how the manager serves its APIs. The command line sets this when the manager starts. */
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

/** Webhook sends changes to a program that listens at a URL. */
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

/** WorkflowRequest is a requested change that other users approve or deny. */
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

/** X509Authenticator authenticates users by client certificates and checks their revocation by OCSP. */
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

/** Zone is a DNS zone in a view or below another zone. */
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

/** ZoneImport imports zones into a view. */
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

/** ZoneMove moves a zone to another name, as in release 9.6. It is kept as a record of the operation. */
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

/** ZoneSigningKey is a key that signs the records of a zone (RFC 6781). */
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

/** ZoneTemplate contains records for zones. */
export type ZoneTemplate = {
  id: number
  type: "ZoneTemplate"
  name: string | null
  _links?: Links
  configuration: Ref | null
  userDefinedFields: any
}

/** ZoneTemplateApplication applies zone templates to zones. It is kept as a record of the operation. */
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
