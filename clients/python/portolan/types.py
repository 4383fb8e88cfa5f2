# Made by go generate ./clients/python from the declarations. Do not edit.

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict


ACL = TypedDict("ACL", {
    "id": int,
    "type": Literal["ACL"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "predefined": bool,
    "matchElements": List[str],
}, total=False)
ACL.__doc__ = "ACL is an access control list of name servers for queries, transfers, notifies or updates. The first matching element decides."


AccessRight = TypedDict("AccessRight", {
    "id": int,
    "type": Literal["AccessRight"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "userScope": Dict[str, Any],
    "resource": Optional[Dict[str, Any]],
    "defaultAccessLevel": Literal["HIDE", "VIEW", "CHANGE", "ADD", "FULL"],
    "accessOverrides": List[Dict[str, Any]],
    "deploymentsAllowed": bool,
    "quickDeploymentsAllowed": bool,
    "selectiveDeploymentsAllowed": bool,
    "workflowLevel": Literal["NONE", "RECOMMEND", "APPROVE", "DELETE"],
}, total=False)
AccessRight.__doc__ = "AccessRight sets what a user, or the members of a group, may see and change."


AddressManagerAuthenticator = TypedDict("AddressManagerAuthenticator", {
    "id": int,
    "type": Literal["AddressManagerAuthenticator"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "hostname": Optional[str],
}, total=False)
AddressManagerAuthenticator.__doc__ = "AddressManagerAuthenticator is the manager's own authenticator, which always exists. It checks passwords that the manager stores."


AddressManagerDatabase = TypedDict("AddressManagerDatabase", {
    "id": int,
    "type": Literal["AddressManagerDatabase"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Literal["STANDALONE", "REPLICATED", "BREAK"],
    "entityCount": Optional[int],
    "size": Optional[int],
    "lastBackupDateTime": Optional[str],
    "activeSessions": Optional[int],
    "activeSessionCount": Optional[int],
    "backupEnabled": Optional[bool],
    "replicationEnabled": bool,
    "replicationRole": Optional[Literal["STANDALONE", "PRIMARY", "STANDBY", "REMOVED_STANDBY"]],
    "replicationStatus": Optional[Literal["ENROLLING", "FAILINGOVER", "BREAKING", "RESETTING", "INITIALIZING", "REPLICATING", "NOT_REPLICATING", "PENDING", "UNAVAILABLE", "REMOVED_STANDBY", "INITIALIZING_FAILOVER"]],
    "compressionEnabled": Optional[bool],
    "latencyWarningThreshold": Optional[str],
    "latencyCriticalThreshold": Optional[str],
    "servers": Optional[List[Dict[str, Any]]],
}, total=False)
AddressManagerDatabase.__doc__ = "AddressManagerDatabase is the database of the manager."


AddressManagerServer = TypedDict("AddressManagerServer", {
    "id": int,
    "type": Literal["AddressManagerServer"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "address": str,
    "state": Optional[Literal["STANDALONE", "PRIMARY", "STANDBY"]],
    "replicationStatus": Optional[Literal["DISABLED", "ENROLLING", "FAILINGOVER", "BREAKING", "RESETTING", "ENABLED", "INITIALIZING", "REPLICATING", "NOTREPLICATING", "PENDING", "UNAVAILABLE", "REMOVEDSTANDBY", "INITIALIZINGFAILOVER"]],
    "enrollmentPercentComplete": Optional[int],
    "replicationLatency": Optional[str],
}, total=False)
AddressManagerServer.__doc__ = "AddressManagerServer is a machine to replicate the database to."


AdministrativeAccessRight = TypedDict("AdministrativeAccessRight", {
    "id": int,
    "type": Literal["AdministrativeAccessRight"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "userScope": Dict[str, Any],
    "administrativeAccessRights": List[Dict[str, Any]],
}, total=False)
AdministrativeAccessRight.__doc__ = "AdministrativeAccessRight sets what a user, or the members of a group, may see of the manager itself."


AliasRecord = TypedDict("AliasRecord", {
    "id": int,
    "type": Literal["AliasRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "linkedRecord": Dict[str, Any],
}, total=False)
AliasRecord.__doc__ = "AliasRecord is an alias for another record (CNAME)."


AnycastService = TypedDict("AnycastService", {
    "id": int,
    "type": Literal["AnycastService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "manualOverrideEnabled": bool,
    "enabled": bool,
    "addresses": List[str],
    "routing": Optional[Dict[str, Any]],
}, total=False)
AnycastService.__doc__ = "AnycastService announces addresses of the server to routers."


AuditDataSettings = TypedDict("AuditDataSettings", {
    "id": int,
    "type": Literal["AuditDataSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "administrativeHistoryRetentionPeriod": Optional[str],
    "sessionAndEventsRetentionPeriod": Optional[str],
    "dhcpTransactionRetentionPeriod": Optional[str],
    "ddnsTransactionRetentionPeriod": Optional[str],
    "exportEnabled": bool,
    "destination": Optional[Dict[str, Any]],
}, total=False)
AuditDataSettings.__doc__ = "AuditDataSettings sets how long the history and events are kept."


Configuration = TypedDict("Configuration", {
    "id": int,
    "type": Literal["Configuration"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configurationGroup": Optional[str],
    "description": Optional[str],
    "snmp": Optional[Dict[str, Any]],
    "serverMonitoringEnabled": bool,
    "dhcpConfigurationValidationEnabled": bool,
    "dnsConfigurationValidationEnabled": bool,
    "dnsZoneValidationEnabled": bool,
    "checkIntegrityValidation": Literal["NONE", "LOCAL", "LOCAL_SIBLING", "FULL", "FULL_SIBLING"],
    "checkMxCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkMxValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNamesValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNsValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkSrvCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkWildcardValidation": Literal["IGNORE", "WARN"],
    "dnsOptionInheritanceEnabled": bool,
    "dnsFeedEnabled": bool,
    "dnsFeedLicense": Optional[str],
    "blockUsageCalculation": Literal["ADDRESS_ALLOCATION", "NETWORK_ALLOCATION"],
    "sharedNetworkTagGroup": Optional[Dict[str, Any]],
    "fourEyesTypes": List[str],
    "keyAutoRegenerationEnabled": bool,
}, total=False)
Configuration.__doc__ = "Configuration is the top of the address and name hierarchy. Configurations are independent of each other: their address space and names do not conflict."


DHCPActivityService = TypedDict("DHCPActivityService", {
    "id": int,
    "type": Literal["DHCPActivityService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "destination": Optional[Dict[str, Any]],
    "maximumBufferedEvents": int,
    "maxBufferedEvents": int,
    "dhcpv4Enabled": bool,
    "dhcpv6Enabled": bool,
}, total=False)
DHCPActivityService.__doc__ = "DHCPActivityService sends the beginnings and ends of leases of a DHCP server to a destination."


DHCPAlertSettings = TypedDict("DHCPAlertSettings", {
    "id": int,
    "type": Literal["DHCPAlertSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "lowWaterMark": Optional[int],
    "highWaterMark": Optional[int],
    "pollingInterval": Optional[str],
}, total=False)
DHCPAlertSettings.__doc__ = "DHCPAlertSettings sets when the utilization of IPv4 DHCP ranges raises an event. Its marks apply to ranges without marks of their own, of their network or of a block above."


DHCPClientIdentifier = TypedDict("DHCPClientIdentifier", {
    "id": int,
    "type": Literal["DHCPClientIdentifier"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "uid": Any,
}, total=False)
DHCPClientIdentifier.__doc__ = "DHCPClientIdentifier is the identifier that a DHCPv4 client sends (RFC 2132 section 9.14)."


DHCPDeploymentRole = TypedDict("DHCPDeploymentRole", {
    "id": int,
    "type": Literal["DHCPDeploymentRole"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "roleType": Literal["PRIMARY", "NONE"],
    "interfaces": List[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "roleInterfaces": Optional[List[Dict[str, Any]]],
}, total=False)
DHCPDeploymentRole.__doc__ = "DHCPDeploymentRole assigns the interfaces that serve the addresses of a block or network: a primary one and an optional failover peer."


DHCPForwardZone = TypedDict("DHCPForwardZone", {
    "id": int,
    "type": Literal["DHCPForwardZone"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "primaryDnsServerAddress": str,
    "secondaryDnsServerAddress": Optional[str],
    "dynamicUpdateSigningKeyType": Literal["NONE", "TSIG", "GSS_TSIG"],
    "dynamicUpdateSigningKey": Optional[Dict[str, Any]],
    "dynamicUpdateSigningKeyRealm": Optional[Dict[str, Any]],
    "zone": Optional[Dict[str, Any]],
    "zoneAbsoluteName": Optional[str],
}, total=False)
DHCPForwardZone.__doc__ = "DHCPForwardZone defines the servers for updates of client names in a zone."


DHCPPartner = TypedDict("DHCPPartner", {
    "id": int,
    "type": Literal["DHCPPartner"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "partner": Optional[Dict[str, Any]],
    "state": Optional[str],
    "stateDateTime": Optional[str],
    "connected": bool,
    "lastContactDateTime": Optional[str],
    "reportDateTime": Optional[str],
    "clockDifference": int,
    "pendingUpdates": int,
    "conflicts": int,
    "mclt": int,
    "port": int,
    "keyFingerprint": Optional[str],
}, total=False)
DHCPPartner.__doc__ = "DHCPPartner is a failover pair of a DHCP server, as the server reports it."


DHCPPartnerAction = TypedDict("DHCPPartnerAction", {
    "id": int,
    "type": Literal["DHCPPartnerAction"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "partner": Dict[str, Any],
    "action": Literal["PARTNER_DOWN"],
    "force": bool,
    "state": Optional[Literal["PENDING", "DECLARED", "DONE", "NO_EFFECT"]],
    "creationDateTime": Optional[str],
}, total=False)
DHCPPartnerAction.__doc__ = "DHCPPartnerAction is a declaration of a user about the failover partner of a server."


DHCPReverseZone = TypedDict("DHCPReverseZone", {
    "id": int,
    "type": Literal["DHCPReverseZone"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "primaryDnsServerAddress": str,
    "secondaryDnsServerAddress": Optional[str],
    "dynamicUpdateSigningKeyType": Literal["NONE", "TSIG", "GSS_TSIG"],
    "dynamicUpdateSigningKey": Optional[Dict[str, Any]],
    "dynamicUpdateSigningKeyRealm": Optional[Dict[str, Any]],
    "prefix": Optional[Dict[str, Any]],
    "prefixRange": Optional[str],
}, total=False)
DHCPReverseZone.__doc__ = "DHCPReverseZone defines the servers for updates of the names of addresses in a prefix."


DHCPStatisticsService = TypedDict("DHCPStatisticsService", {
    "id": int,
    "type": Literal["DHCPStatisticsService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "destination": Optional[Dict[str, Any]],
    "maximumBufferedEvents": int,
    "maxBufferedEvents": int,
    "dhcpv4Enabled": bool,
    "dhcpv6Enabled": bool,
}, total=False)
DHCPStatisticsService.__doc__ = "DHCPStatisticsService sends statistics of DHCP servers."


DHCPUniqueIdentifier = TypedDict("DHCPUniqueIdentifier", {
    "id": int,
    "type": Literal["DHCPUniqueIdentifier"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "duid": str,
}, total=False)
DHCPUniqueIdentifier.__doc__ = "DHCPUniqueIdentifier is the DUID that a DHCPv6 client sends (RFC 8415 section 11)."


DHCPVendorOption = TypedDict("DHCPVendorOption", {
    "id": int,
    "type": Literal["DHCPVendorOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Dict[str, Any],
}, total=False)
DHCPVendorOption.__doc__ = "DHCPVendorOption is an option of a vendor, which is sent to the vendor's clients within option 43."


DHCPVendorOptionDefinition = TypedDict("DHCPVendorOptionDefinition", {
    "id": int,
    "type": Literal["DHCPVendorOptionDefinition"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": int,
    "displayName": str,
    "description": str,
    "valueFormat": Any,
}, total=False)
DHCPVendorOptionDefinition.__doc__ = "DHCPVendorOptionDefinition defines an option of a vendor, which is a part of option 43."


DHCPZoneGroup = TypedDict("DHCPZoneGroup", {
    "id": int,
    "type": Literal["DHCPZoneGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
}, total=False)
DHCPZoneGroup.__doc__ = "DHCPZoneGroup defines for a group of DHCP servers where the names of clients are updated in DNS, and how the updates are signed."


DHCPv4ClientClass = TypedDict("DHCPv4ClientClass", {
    "id": int,
    "type": Literal["DHCPv4ClientClass"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "description": Optional[str],
    "option": Optional[str],
    "matchOffset": Optional[int],
    "matchLength": Optional[int],
    "matchExpression": Optional[str],
}, total=False)
DHCPv4ClientClass.__doc__ = "DHCPv4ClientClass is a class of DHCPv4 clients. Clients belong to it by a part of an option that they send, or by an expression."


DHCPv4ClientOption = TypedDict("DHCPv4ClientOption", {
    "id": int,
    "type": Literal["DHCPv4ClientOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
DHCPv4ClientOption.__doc__ = "DHCPv4ClientOption is an option that is sent to DHCPv4 clients."


DHCPv4ClientOptionDefinition = TypedDict("DHCPv4ClientOptionDefinition", {
    "id": int,
    "type": Literal["DHCPv4ClientOptionDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
DHCPv4ClientOptionDefinition.__doc__ = "DHCPv4ClientOptionDefinition defines an option that a DHCPv4 server sends to clients."


DHCPv4CustomClientOptionDefinition = TypedDict("DHCPv4CustomClientOptionDefinition", {
    "id": int,
    "type": Literal["DHCPv4CustomClientOptionDefinition"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": int,
    "displayName": str,
    "description": str,
    "valueFormat": Any,
}, total=False)
DHCPv4CustomClientOptionDefinition.__doc__ = "DHCPv4CustomClientOptionDefinition defines a custom option that a DHCPv4 server sends to clients."


DHCPv4RawOption = TypedDict("DHCPv4RawOption", {
    "id": int,
    "type": Literal["DHCPv4RawOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "value": str,
}, total=False)
DHCPv4RawOption.__doc__ = "DHCPv4RawOption is text for the configuration of DHCPv4 servers."


DHCPv4ServiceOption = TypedDict("DHCPv4ServiceOption", {
    "id": int,
    "type": Literal["DHCPv4ServiceOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
DHCPv4ServiceOption.__doc__ = "DHCPv4ServiceOption is a setting of DHCPv4 servers."


DHCPv4ServiceOptionDefinition = TypedDict("DHCPv4ServiceOptionDefinition", {
    "id": int,
    "type": Literal["DHCPv4ServiceOptionDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
DHCPv4ServiceOptionDefinition.__doc__ = "DHCPv4ServiceOptionDefinition defines a setting of a DHCPv4 server."


DHCPv4Subclass = TypedDict("DHCPv4Subclass", {
    "id": int,
    "type": Literal["DHCPv4Subclass"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "description": Optional[str],
    "value": str,
}, total=False)
DHCPv4Subclass.__doc__ = "DHCPv4Subclass contains the clients of a class that send a specific value."


DHCPv6ClientOption = TypedDict("DHCPv6ClientOption", {
    "id": int,
    "type": Literal["DHCPv6ClientOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
DHCPv6ClientOption.__doc__ = "DHCPv6ClientOption is an option that is sent to DHCPv6 clients."


DHCPv6ClientOptionDefinition = TypedDict("DHCPv6ClientOptionDefinition", {
    "id": int,
    "type": Literal["DHCPv6ClientOptionDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
DHCPv6ClientOptionDefinition.__doc__ = "DHCPv6ClientOptionDefinition defines an option that a DHCPv6 server sends to clients."


DHCPv6RawOption = TypedDict("DHCPv6RawOption", {
    "id": int,
    "type": Literal["DHCPv6RawOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "value": str,
}, total=False)
DHCPv6RawOption.__doc__ = "DHCPv6RawOption is text for the configuration of DHCPv6 servers."


DHCPv6ServiceOption = TypedDict("DHCPv6ServiceOption", {
    "id": int,
    "type": Literal["DHCPv6ServiceOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
DHCPv6ServiceOption.__doc__ = "DHCPv6ServiceOption is a setting of DHCPv6 servers."


DHCPv6ServiceOptionDefinition = TypedDict("DHCPv6ServiceOptionDefinition", {
    "id": int,
    "type": Literal["DHCPv6ServiceOptionDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
DHCPv6ServiceOptionDefinition.__doc__ = "DHCPv6ServiceOptionDefinition defines a setting of a DHCPv6 server."


DNSActivityService = TypedDict("DNSActivityService", {
    "id": int,
    "type": Literal["DNSActivityService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "destination": Optional[Dict[str, Any]],
    "maximumBufferedEvents": int,
    "maxBufferedEvents": int,
    "filters": List[Dict[str, Any]],
}, total=False)
DNSActivityService.__doc__ = "DNSActivityService sends the queries and responses of name servers."


DNSDeploymentRole = TypedDict("DNSDeploymentRole", {
    "id": int,
    "type": Literal["DNSDeploymentRole"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "roleType": Literal["PRIMARY", "HIDDEN_PRIMARY", "SECONDARY", "STEALTH_SECONDARY", "FORWARDING", "STUB", "RECURSIVE", "NONE"],
    "view": Optional[Dict[str, Any]],
    "nsRecordTtl": Optional[int],
    "interfaces": List[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "roleInterfaces": Optional[List[Dict[str, Any]]],
}, total=False)
DNSDeploymentRole.__doc__ = "DNSDeploymentRole assigns interfaces to a view, a zone, or the reverse zones of a block or network, with the role of their servers."


DNSMove = TypedDict("DNSMove", {
    "id": int,
    "type": Literal["DNSMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "absoluteName": str,
}, total=False)
DNSMove.__doc__ = "DNSMove moves a zone or record to another name. It is kept as a record of the operation."


DNSOption = TypedDict("DNSOption", {
    "id": int,
    "type": Literal["DNSOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
DNSOption.__doc__ = "DNSOption is a setting of name servers."


DNSOptionDefinition = TypedDict("DNSOptionDefinition", {
    "id": int,
    "type": Literal["DNSOptionDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
DNSOptionDefinition.__doc__ = "DNSOptionDefinition defines a setting of a name server."


DNSRawOption = TypedDict("DNSRawOption", {
    "id": int,
    "type": Literal["DNSRawOption"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "value": str,
}, total=False)
DNSRawOption.__doc__ = "DNSRawOption is text for the configuration of name servers."


DNSResolverService = TypedDict("DNSResolverService", {
    "id": int,
    "type": Literal["DNSResolverService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "servers": List[str],
}, total=False)
DNSResolverService.__doc__ = "DNSResolverService sets the name servers that the machine itself queries."


DNSSECSigningPolicy = TypedDict("DNSSECSigningPolicy", {
    "id": int,
    "type": Literal["DNSSECSigningPolicy"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "keyProvider": Literal["ADDRESS_MANAGER", "ENTRUST_HSM"],
    "signatureDigestAlgorithm": Literal["SHA1", "SHA256", "SHA384"],
    "signatureValidityPeriod": str,
    "signatureResigningPeriod": str,
    "zoneSigningKeyAlgorithm": Literal["ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448", "RSAMD5", "RSANSEC3SHA256", "RSANSEC3SHA512", "RSASHA1", "RSASHA1NSEC3SHA1", "RSASHA256", "RSASHA512"],
    "zoneSigningKeyLength": int,
    "zoneSigningKeyOverrideTtl": Optional[str],
    "zoneSigningKeyValidityPeriod": str,
    "zoneSigningKeyOverlapPeriod": str,
    "zoneSigningKeyRolloverMethod": Literal["DOUBLE_SIGNING", "PRE_PUBLISH"],
    "zoneSigningKeySigningPeriod": Optional[str],
    "zoneSigningKeyProtectionType": Optional[Literal["MODULE"]],
    "keySigningKeyAlgorithm": Literal["ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448", "RSAMD5", "RSANSEC3SHA256", "RSANSEC3SHA512", "RSASHA1", "RSASHA1NSEC3SHA1", "RSASHA256", "RSASHA512"],
    "keySigningKeyLength": int,
    "keySigningKeyOverrideTtl": Optional[str],
    "keySigningKeyValidityPeriod": str,
    "keySigningKeyOverlapPeriod": str,
    "keySigningKeyRolloverMethod": Literal["DOUBLE_SIGNING", "PRE_PUBLISH"],
    "keySigningKeySigningPeriod": Optional[str],
    "keySigningKeyProtectionType": Optional[Literal["MODULE"]],
}, total=False)
DNSSECSigningPolicy.__doc__ = "DNSSECSigningPolicy defines the keys and signatures of signed zones: algorithms, validity periods and key rollover."


DNSStatisticsService = TypedDict("DNSStatisticsService", {
    "id": int,
    "type": Literal["DNSStatisticsService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "destination": Optional[Dict[str, Any]],
    "maximumBufferedEvents": int,
    "maxBufferedEvents": int,
    "pollingInterval": str,
}, total=False)
DNSStatisticsService.__doc__ = "DNSStatisticsService sends statistics of name servers."


DatabaseBackupFile = TypedDict("DatabaseBackupFile", {
    "id": int,
    "type": Literal["DatabaseBackupFile"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "size": int,
    "modificationDateTime": Optional[str],
    "host": Optional[str],
    "place": Optional[str],
    "sent": bool,
}, total=False)
DatabaseBackupFile.__doc__ = "DatabaseBackupFile is a backup of the database: a file on the machine of the manager that made it or received it. portolan restore reads it. It is uploaded and downloaded unchanged (multipart/form-data, application/octet-stream)."


DatabaseBackupSchedule = TypedDict("DatabaseBackupSchedule", {
    "id": int,
    "type": Literal["DatabaseBackupSchedule"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "UNKNOWN"]],
    "startDateTime": Optional[str],
    "interval": Optional[str],
    "maxFileCount": int,
    "filePrefix": Optional[str],
    "localBackupsEnabled": bool,
    "remoteBackupsEnabled": bool,
    "remoteHost": Optional[str],
    "remoteDirectory": Optional[str],
    "remoteUser": Optional[str],
    "remotePassword": Optional[str],
    "transferProtocol": Optional[Literal["FTP", "SFTP", "S3"]],
    "remoteHostKey": Optional[str],
    "lastRemoteDateTime": Optional[str],
    "nextDateTime": Optional[str],
    "lastDateTime": Optional[str],
}, total=False)
DatabaseBackupSchedule.__doc__ = "DatabaseBackupSchedule makes backups of the database at set times. PATCH {\"state\":\"QUEUED\"} makes one now."


DatabaseLog = TypedDict("DatabaseLog", {
    "id": int,
    "type": Literal["DatabaseLog"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "size": Optional[int],
    "modificationDateTime": Optional[str],
}, total=False)
DatabaseLog.__doc__ = "DatabaseLog is a log of the database. There are none: all messages are in the manager's log."


DenyMACPool = TypedDict("DenyMACPool", {
    "id": int,
    "type": Literal["DenyMACPool"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "instantDeploymentEnabled": bool,
}, total=False)
DenyMACPool.__doc__ = "DenyMACPool is the set of hardware addresses that no range serves. Every configuration has one."


DeploymentRoleMove = TypedDict("DeploymentRoleMove", {
    "id": int,
    "type": Literal["DeploymentRoleMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "roleTypes": List[str],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
DeploymentRoleMove.__doc__ = "DeploymentRoleMove moves the roles of a server to another interface, and is the record of the move."


DeploymentSchedule = TypedDict("DeploymentSchedule", {
    "id": int,
    "type": Literal["DeploymentSchedule"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "startDateTime": str,
    "interval": Optional[str],
    "enabled": bool,
    "deploymentType": Literal["DifferentialDeployment", "FullDeployment", "ValidationDeployment"],
    "deploymentServices": List[str],
    "servers": List[Dict[str, Any]],
    "nextDateTime": Optional[str],
    "lastDateTime": Optional[str],
}, total=False)
DeploymentSchedule.__doc__ = "DeploymentSchedule deploys to servers at set times."


Device = TypedDict("Device", {
    "id": int,
    "type": Literal["Device"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "addresses": Optional[List[Dict[str, Any]]],
    "deviceType": Optional[Dict[str, Any]],
    "deviceSubtype": Optional[Dict[str, Any]],
}, total=False)
Device.__doc__ = "Device is a machine that has addresses."


DeviceSubtype = TypedDict("DeviceSubtype", {
    "id": int,
    "type": Literal["DeviceSubtype"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
}, total=False)
DeviceSubtype.__doc__ = "DeviceSubtype is a more specific kind of device, such as a model of a manufacturer."


DeviceType = TypedDict("DeviceType", {
    "id": int,
    "type": Literal["DeviceType"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
}, total=False)
DeviceType.__doc__ = "DeviceType is a manufacturer or a kind of device."


DifferentialDeployment = TypedDict("DifferentialDeployment", {
    "id": int,
    "type": Literal["DifferentialDeployment"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "status": Optional[Literal["CANCEL"]],
    "message": Optional[str],
    "percentComplete": Optional[int],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "user": Optional[Dict[str, Any]],
    "method": Optional[str],
    "creationDateTime": Optional[str],
    "service": Literal["DHCPv4", "DHCPv6", "DNS", "TFTP"],
}, total=False)
DifferentialDeployment.__doc__ = "DifferentialDeployment deploys the changes of the records in a server's zones since the last deployment."


DiscoveredARPEntry = TypedDict("DiscoveredARPEntry", {
    "id": int,
    "type": Literal["DiscoveredARPEntry"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "address": Optional[str],
    "macAddress": Optional[str],
    "interface": Optional[Dict[str, Any]],
}, total=False)
DiscoveredARPEntry.__doc__ = "DiscoveredARPEntry is an entry in the ARP table of a router."


DiscoveredHost = TypedDict("DiscoveredHost", {
    "id": int,
    "type": Literal["DiscoveredHost"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "address": Optional[str],
    "macAddress": Optional[str],
    "interface": Optional[Dict[str, Any]],
}, total=False)
DiscoveredHost.__doc__ = "DiscoveredHost is a host that answered."


DiscoveredInterface = TypedDict("DiscoveredInterface", {
    "id": int,
    "type": Literal["DiscoveredInterface"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "description": Optional[str],
    "interfaceIndex": Optional[int],
    "macAddress": Optional[str],
    "speed": Optional[int],
    "connector": Optional[str],
    "alias": Optional[str],
}, total=False)
DiscoveredInterface.__doc__ = "DiscoveredInterface is an interface of a router or switch."


DiscoveredMACAddress = TypedDict("DiscoveredMACAddress", {
    "id": int,
    "type": Literal["DiscoveredMACAddress"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "macAddress": Optional[str],
    "portMode": Optional[Literal["TRUNK", "ACCESS"]],
    "interface": Optional[Dict[str, Any]],
}, total=False)
DiscoveredMACAddress.__doc__ = "DiscoveredMACAddress is a hardware address that a switch has learned."


DiscoveredNetwork = TypedDict("DiscoveredNetwork", {
    "id": int,
    "type": Literal["DiscoveredNetwork"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "range": Optional[str],
    "interface": Optional[Dict[str, Any]],
}, total=False)
DiscoveredNetwork.__doc__ = "DiscoveredNetwork is a network that is attached to a router."


DiscoveredRouter = TypedDict("DiscoveredRouter", {
    "id": int,
    "type": Literal["DiscoveredRouter"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "description": Optional[str],
    "address": Optional[str],
    "location": Optional[str],
}, total=False)
DiscoveredRouter.__doc__ = "DiscoveredRouter is a router that answered."


DiscoveredSwitch = TypedDict("DiscoveredSwitch", {
    "id": int,
    "type": Literal["DiscoveredSwitch"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "description": Optional[str],
    "address": Optional[str],
    "location": Optional[str],
}, total=False)
DiscoveredSwitch.__doc__ = "DiscoveredSwitch is a switch that answered."


DiscoveredVLAN = TypedDict("DiscoveredVLAN", {
    "id": int,
    "type": Literal["DiscoveredVLAN"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "device": Optional[Dict[str, Any]],
    "vlanId": Optional[int],
    "interface": Optional[Dict[str, Any]],
}, total=False)
DiscoveredVLAN.__doc__ = "DiscoveredVLAN is a VLAN of a switch."


ENUMNumberZone = TypedDict("ENUMNumberZone", {
    "id": int,
    "type": Literal["ENUMNumberZone"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
    "numberName": Optional[str],
    "absoluteName": Optional[str],
}, total=False)
ENUMNumberZone.__doc__ = "ENUMNumberZone is a telephone number, or a prefix of numbers, below an ENUM zone. The name consists of its digits in reverse order."


ENUMZone = TypedDict("ENUMZone", {
    "id": int,
    "type": Literal["ENUMZone"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
    "deploymentEnabled": bool,
    "absoluteName": Optional[str],
}, total=False)
ENUMZone.__doc__ = "ENUMZone is a zone for telephone numbers as names (RFC 6116), such as e164.arpa."


ExternalHostRecord = TypedDict("ExternalHostRecord", {
    "id": int,
    "type": Literal["ExternalHostRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "view": Optional[Dict[str, Any]],
}, total=False)
ExternalHostRecord.__doc__ = "ExternalHostRecord is the name of a host of another organization. Other records can link to it. It is not served."


ExternalHostsZone = TypedDict("ExternalHostsZone", {
    "id": int,
    "type": Literal["ExternalHostsZone"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
}, total=False)
ExternalHostsZone.__doc__ = "ExternalHostsZone contains the names of hosts of other organizations. Every view has one."


FailoverAPIService = TypedDict("FailoverAPIService", {
    "id": int,
    "type": Literal["FailoverAPIService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "certificate": Optional[str],
    "privateKey": Optional[str],
    "trustStore": Optional[List[str]],
    "trustStorePassword": Optional[str],
}, total=False)
FailoverAPIService.__doc__ = "FailoverAPIService lets another manager take over; servers do not have it."


FirewallService = TypedDict("FirewallService", {
    "id": int,
    "type": Literal["FirewallService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "pingAllowed": bool,
}, total=False)
FirewallService.__doc__ = "FirewallService sets the traffic that the machine accepts."


FleetRight = TypedDict("FleetRight", {
    "id": int,
    "type": Literal["FleetRight"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "userScope": Dict[str, Any],
    "labels": List[str],
    "accessLevel": Literal["VIEW", "CHANGE", "FULL"],
}, total=False)
FleetRight.__doc__ = "FleetRight sets what a user, or the members of a group, may do with the service points that have certain labels. Administrators, and users who see everything, see all service points without it. Portolan extension."


FullDeployment = TypedDict("FullDeployment", {
    "id": int,
    "type": Literal["FullDeployment"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "status": Optional[Literal["CANCEL"]],
    "message": Optional[str],
    "percentComplete": Optional[int],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "user": Optional[Dict[str, Any]],
    "method": Optional[str],
    "creationDateTime": Optional[str],
    "service": Literal["DHCPv4", "DHCPv6", "DNS", "TFTP"],
}, total=False)
FullDeployment.__doc__ = "FullDeployment deploys the complete content of a server."


GatewayService = TypedDict("GatewayService", {
    "id": int,
    "type": Literal["GatewayService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "state": Optional[Literal["RUNNING", "STOPPED", "DISABLED", "UNKNOWN"]],
    "container": Optional[Dict[str, Any]],
    "repositoryUsername": Optional[str],
    "repositoryPassword": Optional[str],
    "deleteImageOnDisable": Optional[bool],
    "deleteMountPointsOnDisable": Optional[bool],
}, total=False)
GatewayService.__doc__ = "GatewayService runs a container on the machine."


GenericRecord = TypedDict("GenericRecord", {
    "id": int,
    "type": Literal["GenericRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": str,
    "rdata": str,
}, total=False)
GenericRecord.__doc__ = "GenericRecord is a record of any other DNS type, with its data in zone-file syntax."


GlobalSettings = TypedDict("GlobalSettings", {
    "id": int,
    "type": Literal["GlobalSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "mandatoryCommentsEnabled": bool,
    "rememberLastAddressEnabled": bool,
    "sessionTimeout": str,
    "disclaimerEnabled": bool,
    "disclaimerText": Optional[str],
    "customReverseZoneFormatsAllowed": bool,
}, total=False)
GlobalSettings.__doc__ = "GlobalSettings are settings that apply to all users."


HAServer = TypedDict("HAServer", {
    "id": int,
    "type": Literal["HAServer"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "state": Optional[Literal["ENABLED", "DISABLED", "FAILOVER", "RESET_CONTROL", "REPAIR", "DISABLE"]],
    "username": Optional[str],
    "password": Optional[str],
    "serverGroup": Optional[Dict[str, Any]],
    "connected": bool,
    "monitoringEnabled": Optional[bool],
    "snmp": Optional[Dict[str, Any]],
    "interfaces": List[Dict[str, Any]],
    "location": Optional[Dict[str, Any]],
    "statistics": Optional[Dict[str, Optional[str]]],
    "overrideConfigurationLevelDhcpValidation": bool,
    "overrideConfigurationLevelDnsValidation": bool,
    "dhcpConfigurationValidationEnabled": bool,
    "dnsConfigurationValidationEnabled": bool,
    "dnsZoneValidationEnabled": bool,
    "checkIntegrityValidation": Literal["NONE", "LOCAL", "LOCAL_SIBLING", "FULL", "FULL_SIBLING"],
    "checkMxCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkMxValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNamesValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNsValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkSrvCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkWildcardValidation": Literal["IGNORE", "WARN"],
    "privateAddress": Optional[str],
    "encryptedNotificationsEnabled": Optional[bool],
    "managementUrl": Optional[str],
    "selfIpAddress": Optional[str],
    "serviceProviderAccount": Optional[str],
    "serviceProviderApiKey": Optional[str],
    "haBackboneEnabled": bool,
    "haPingAddress": Optional[str],
    "dhcpServicePrincipal": Optional[Dict[str, Any]],
    "dnsServicePrincipal": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "servicePoint": Optional[str],
    "profile": Optional[Literal["ADONIS_XMB4", "ADONIS_XMB3", "ADONIS_XMB2", "OTHER_DNS_SERVER", "AFILIAS_DNS_SERVER", "ADONIS_800", "ADONIS_1200", "ADONIS_1900", "ADONIS_1950", "DNS_DHCP_SERVER_20", "DNS_DHCP_SERVER_45", "DNS_DHCP_SERVER_60", "DNS_DHCP_SERVER_100", "DNS_DHCP_SERVER_100_D", "LTM", "GTM", "DNS_DHCP_GEN4_7000", "DNS_DHCP_GEN4_5000", "DNS_DHCP_GEN4_4000", "DNS_DHCP_GEN4_2000", "CLOUD_DNS_SERVER", "PORTOLAN_SERVICE_POINT"]],
    "activeServer": Dict[str, Any],
    "passiveServer": Dict[str, Any],
}, total=False)
HAServer.__doc__ = "HAServer is a pair of servers: an active one that serves, and a passive one as its standby."


HINFORecord = TypedDict("HINFORecord", {
    "id": int,
    "type": Literal["HINFORecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "os": Optional[str],
    "cpu": Optional[str],
}, total=False)
HINFORecord.__doc__ = "HINFORecord describes a host (RFC 1035 section 3.3.2)."


HTTPSRecord = TypedDict("HTTPSRecord", {
    "id": int,
    "type": Literal["HTTPSRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "linkedRecord": Optional[Dict[str, Any]],
    "priority": int,
    "serviceParameters": Optional[Dict[str, Any]],
    "recordType": Optional[str],
}, total=False)
HTTPSRecord.__doc__ = "HTTPSRecord is the binding of an HTTP service."


HostRecord = TypedDict("HostRecord", {
    "id": int,
    "type": Literal["HostRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "addresses": List[Dict[str, Any]],
    "reverseRecord": bool,
    "views": Optional[List[Dict[str, Any]]],
    "dependentRecords": Any,
}, total=False)
HostRecord.__doc__ = "HostRecord contains the addresses of a host. It is served as A and AAAA records, and as PTR records if reverseRecord is set."


IPMove = TypedDict("IPMove", {
    "id": int,
    "type": Literal["IPMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "address": str,
    "macAddress": Optional[Dict[str, Any]],
    "serversUpdated": Optional[bool],
}, total=False)
IPMove.__doc__ = "IPMove moves an address, or a block or network with its content. It is kept as a record of the operation."


IPv4Address = TypedDict("IPv4Address", {
    "id": int,
    "type": Literal["IPv4Address"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "address": Optional[str],
    "macAddress": Optional[Dict[str, Any]],
    "device": Optional[Dict[str, Any]],
    "location": Optional[Dict[str, Any]],
    "resourceRecords": Optional[List[Dict[str, Any]]],
    "leaseDateTime": Optional[str],
    "leaseExpirationDateTime": Optional[str],
    "remoteId": Optional[str],
    "lastSeenDateTime": Optional[str],
    "state": Literal["STATIC", "RESERVED", "DHCP_RESERVED", "GATEWAY"],
    "ipGroup": Optional[Dict[str, Any]],
    "template": Optional[Dict[str, Any]],
    "circuitId": Optional[str],
    "routerPortInfo": Optional[str],
    "switchPortInfo": Optional[str],
    "vlanInfo": Optional[str],
    "vendorClassIdentifier": Optional[str],
    "parameterRequestList": Optional[List[int]],
    "clientIdentifier": Optional[Dict[str, Any]],
}, total=False)
IPv4Address.__doc__ = "IPv4Address is an IPv4 address in use."


IPv4AddressImport = TypedDict("IPv4AddressImport", {
    "id": int,
    "type": Literal["IPv4AddressImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv4AddressImport.__doc__ = "IPv4AddressImport imports addresses into a network."


IPv4AddressMove = TypedDict("IPv4AddressMove", {
    "id": int,
    "type": Literal["IPv4AddressMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv4AddressMove.__doc__ = "IPv4AddressMove moves an IPv4 address. It is kept as a record of the operation."


IPv4Block = TypedDict("IPv4Block", {
    "id": int,
    "type": Literal["IPv4Block"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "location": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "defaultZones": Optional[List[Dict[str, Any]]],
    "restrictedZones": Optional[List[Dict[str, Any]]],
    "template": Optional[Dict[str, Any]],
    "defaultView": Optional[Dict[str, Any]],
    "duplicateHostnamesAllowed": Optional[bool],
    "pingBeforeAssignEnabled": Optional[bool],
    "pingBeforeAssignmentEnabled": Optional[bool],
    "defaultZonesInherited": bool,
    "restrictedZonesInherited": bool,
    "lowWaterMark": Optional[int],
    "highWaterMark": Optional[int],
    "reverseZoneSigned": bool,
    "reverseZoneSigningPolicy": Optional[Dict[str, Any]],
    "usagePercentage": Any,
}, total=False)
IPv4Block.__doc__ = "IPv4Block is a range of IPv4 address space that contains blocks and networks."


IPv4BlockImport = TypedDict("IPv4BlockImport", {
    "id": int,
    "type": Literal["IPv4BlockImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv4BlockImport.__doc__ = "IPv4BlockImport imports blocks into a block."


IPv4BlockMerge = TypedDict("IPv4BlockMerge", {
    "id": int,
    "type": Literal["IPv4BlockMerge"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "blocks": List[Dict[str, Any]],
    "destination": Dict[str, Any],
}, total=False)
IPv4BlockMerge.__doc__ = "IPv4BlockMerge merges blocks into one. It is kept as a record of the operation."


IPv4BlockMove = TypedDict("IPv4BlockMove", {
    "id": int,
    "type": Literal["IPv4BlockMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv4BlockMove.__doc__ = "IPv4BlockMove moves an IPv4 block with its content. It is kept as a record of the operation."


IPv4BlockSplit = TypedDict("IPv4BlockSplit", {
    "id": int,
    "type": Literal["IPv4BlockSplit"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "block": Dict[str, Any],
    "splitPointAddress": Optional[str],
}, total=False)
IPv4BlockSplit.__doc__ = "IPv4BlockSplit splits a block in two. It is kept as a record of the operation."


IPv4DHCPRange = TypedDict("IPv4DHCPRange", {
    "id": int,
    "type": Literal["IPv4DHCPRange"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "usage": Any,
    "utilization": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "template": Optional[Dict[str, Any]],
    "splitAroundStaticAddresses": bool,
    "exclusionRanges": List[str],
    "lowWaterMark": Optional[int],
    "highWaterMark": Optional[int],
}, total=False)
IPv4DHCPRange.__doc__ = "IPv4DHCPRange is a range of addresses that a DHCP server assigns."


IPv4DHCPRangeMerge = TypedDict("IPv4DHCPRangeMerge", {
    "id": int,
    "type": Literal["IPv4DHCPRangeMerge"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "ranges": List[Dict[str, Any]],
    "destination": Dict[str, Any],
}, total=False)
IPv4DHCPRangeMerge.__doc__ = "IPv4DHCPRangeMerge merges DHCP ranges into one. It is kept as a record of the operation."


IPv4DHCPRangeTemplateItem = TypedDict("IPv4DHCPRangeTemplateItem", {
    "id": int,
    "type": Literal["IPv4DHCPRangeTemplateItem"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "startOffset": int,
    "rangeDefinitionFormat": Literal["OFFSET_SIZE_FROM_START", "OFFSET_SIZE_FROM_END", "OFFSETS", "OFFSET_PERCENTAGE_FROM_START", "OFFSET_PERCENTAGE_FROM_END"],
    "endOffset": Optional[int],
    "size": Optional[int],
    "splitAroundStaticAddresses": bool,
}, total=False)
IPv4DHCPRangeTemplateItem.__doc__ = "IPv4DHCPRangeTemplateItem is the position of a DHCP range."


IPv4GatewayTemplateItem = TypedDict("IPv4GatewayTemplateItem", {
    "id": int,
    "type": Literal["IPv4GatewayTemplateItem"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "startOffset": int,
    "rangeDefinitionFormat": Literal["OFFSET_SIZE_FROM_START", "OFFSET_SIZE_FROM_END"],
}, total=False)
IPv4GatewayTemplateItem.__doc__ = "IPv4GatewayTemplateItem is the position of the gateway."


IPv4Group = TypedDict("IPv4Group", {
    "id": int,
    "type": Literal["IPv4Group"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
}, total=False)
IPv4Group.__doc__ = "IPv4Group is a named part of a network."


IPv4GroupTemplateItem = TypedDict("IPv4GroupTemplateItem", {
    "id": int,
    "type": Literal["IPv4GroupTemplateItem"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "startOffset": int,
    "rangeDefinitionFormat": Literal["OFFSET_SIZE_FROM_START", "OFFSET_SIZE_FROM_END"],
    "size": int,
}, total=False)
IPv4GroupTemplateItem.__doc__ = "IPv4GroupTemplateItem is the position of an IP group."


IPv4Network = TypedDict("IPv4Network", {
    "id": int,
    "type": Literal["IPv4Network"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "location": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "defaultZones": Optional[List[Dict[str, Any]]],
    "restrictedZones": Optional[List[Dict[str, Any]]],
    "template": Optional[Dict[str, Any]],
    "defaultView": Optional[Dict[str, Any]],
    "duplicateHostnamesAllowed": Optional[bool],
    "pingBeforeAssignEnabled": Optional[bool],
    "pingBeforeAssignmentEnabled": Optional[bool],
    "defaultZonesInherited": bool,
    "restrictedZonesInherited": bool,
    "lowWaterMark": Optional[int],
    "highWaterMark": Optional[int],
    "reverseZoneSigned": bool,
    "reverseZoneSigningPolicy": Optional[Dict[str, Any]],
    "gateway": Optional[str],
    "vlan": Optional[Dict[str, Any]],
    "routerPortInfo": Optional[str],
    "sharedNetworkTag": Optional[Dict[str, Any]],
    "dynamicUpdateEnabled": bool,
    "usage": Any,
}, total=False)
IPv4Network.__doc__ = "IPv4Network is an IPv4 subnet: a leaf of the address tree that holds addresses and ranges."


IPv4NetworkImport = TypedDict("IPv4NetworkImport", {
    "id": int,
    "type": Literal["IPv4NetworkImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv4NetworkImport.__doc__ = "IPv4NetworkImport imports networks into a block."


IPv4NetworkMerge = TypedDict("IPv4NetworkMerge", {
    "id": int,
    "type": Literal["IPv4NetworkMerge"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "networks": List[Dict[str, Any]],
    "destination": Dict[str, Any],
}, total=False)
IPv4NetworkMerge.__doc__ = "IPv4NetworkMerge merges networks into one. It is kept as a record of the operation."


IPv4NetworkMove = TypedDict("IPv4NetworkMove", {
    "id": int,
    "type": Literal["IPv4NetworkMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv4NetworkMove.__doc__ = "IPv4NetworkMove moves an IPv4 network with its content. It is kept as a record of the operation."


IPv4NetworkSplit = TypedDict("IPv4NetworkSplit", {
    "id": int,
    "type": Literal["IPv4NetworkSplit"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "network": Dict[str, Any],
    "networkCount": int,
    "gatewayPreserved": Optional[bool],
    "defaultGatewayAssigned": Optional[bool],
    "conflictResolutionStrategy": Optional[Literal["USE_EXISTING", "OVERWRITE"]],
    "template": Optional[Dict[str, Any]],
}, total=False)
IPv4NetworkSplit.__doc__ = "IPv4NetworkSplit splits a network into equal parts. It is kept as a record of the operation."


IPv4ReconciliationPolicy = TypedDict("IPv4ReconciliationPolicy", {
    "id": int,
    "type": Literal["IPv4ReconciliationPolicy"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "enabled": bool,
    "seedRouterAddresses": Optional[List[str]],
    "snmp": Optional[Dict[str, Any]],
    "skipFqdnEnabled": bool,
    "dnsServers": Optional[List[str]],
    "packetsPerSecond": int,
    "notSeenDays": int,
    "neighborBoundaries": Optional[List[str]],
    "neighborLimit": int,
    "vlanTablesEnabled": bool,
    "blackHoleVlan": int,
    "trunkDefaultVlan": int,
    "startDateTime": str,
    "frequency": Optional[str],
    "nextDateTime": Optional[str],
    "lastDateTime": Optional[str],
    "discoveryMethod": Literal["SNMP", "PINGSWEEP", "SNMP_PINGSWEEP", "NO_DISCOVERY"],
    "networkBoundaries": Optional[List[str]],
    "pingSweepNetworkGaps": Optional[List[str]],
    "overrides": Optional[List[str]],
    "reclaimAcceptanceAge": Optional[str],
    "unknownAcceptanceAge": Optional[str],
    "mismatchAcceptanceAge": Optional[str],
    "view": Optional[Dict[str, Any]],
}, total=False)
IPv4ReconciliationPolicy.__doc__ = "IPv4ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database."


IPv4ReservedRangeTemplateItem = TypedDict("IPv4ReservedRangeTemplateItem", {
    "id": int,
    "type": Literal["IPv4ReservedRangeTemplateItem"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "startOffset": int,
    "rangeDefinitionFormat": Literal["OFFSET_SIZE_FROM_START", "OFFSET_SIZE_FROM_END"],
    "size": int,
}, total=False)
IPv4ReservedRangeTemplateItem.__doc__ = "IPv4ReservedRangeTemplateItem is a range of reserved addresses."


IPv4Template = TypedDict("IPv4Template", {
    "id": int,
    "type": Literal["IPv4Template"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "templateItems": Any,
}, total=False)
IPv4Template.__doc__ = "IPv4Template is a layout for networks. Its items place the gateway, reserved addresses, DHCP ranges and IP groups at offsets within a network."


IPv4TemplateApplication = TypedDict("IPv4TemplateApplication", {
    "id": int,
    "type": Literal["IPv4TemplateApplication"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "conflictResolutionStrategy": Optional[Literal["USE_EXISTING", "OVERWRITE", "ABORT"]],
    "deploymentOptionsApplied": Optional[bool],
    "gatewayItemApplied": Optional[bool],
    "reservedRangeItemsApplied": Optional[bool],
    "dhcpRangeItemsApplied": Optional[bool],
    "ipGroupItemsApplied": Optional[bool],
    "orphanedAddressConversionStrategy": Optional[Literal["STATIC", "DHCP_RESERVED", "UNASSIGNED"]],
}, total=False)
IPv4TemplateApplication.__doc__ = "IPv4TemplateApplication applies IPv4 templates to networks. It is kept as a record of the operation."


IPv6Address = TypedDict("IPv6Address", {
    "id": int,
    "type": Literal["IPv6Address"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "address": Optional[str],
    "macAddress": Optional[Dict[str, Any]],
    "device": Optional[Dict[str, Any]],
    "location": Optional[Dict[str, Any]],
    "resourceRecords": Optional[List[Dict[str, Any]]],
    "leaseDateTime": Optional[str],
    "leaseExpirationDateTime": Optional[str],
    "remoteId": Optional[str],
    "lastSeenDateTime": Optional[str],
    "state": Literal["DHCP_RESERVED", "STATIC"],
    "reservedUsing": Optional[Literal["CLIENT_DUID", "MAC_ADDRESS"]],
    "identityAssociationIdentifier": Optional[str],
    "clientIdentifier": Optional[Dict[str, Any]],
    "interfaceId": Optional[str],
}, total=False)
IPv6Address.__doc__ = "IPv6Address is an IPv6 address in use."


IPv6AddressImport = TypedDict("IPv6AddressImport", {
    "id": int,
    "type": Literal["IPv6AddressImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv6AddressImport.__doc__ = "IPv6AddressImport imports addresses into a network."


IPv6AddressMove = TypedDict("IPv6AddressMove", {
    "id": int,
    "type": Literal["IPv6AddressMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv6AddressMove.__doc__ = "IPv6AddressMove moves an IPv6 address. It is kept as a record of the operation."


IPv6Block = TypedDict("IPv6Block", {
    "id": int,
    "type": Literal["IPv6Block"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "location": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "defaultZones": Optional[List[Dict[str, Any]]],
    "restrictedZones": Optional[List[Dict[str, Any]]],
}, total=False)
IPv6Block.__doc__ = "IPv6Block is a range of IPv6 address space that contains blocks and networks."


IPv6BlockImport = TypedDict("IPv6BlockImport", {
    "id": int,
    "type": Literal["IPv6BlockImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv6BlockImport.__doc__ = "IPv6BlockImport imports blocks into a block."


IPv6BlockMove = TypedDict("IPv6BlockMove", {
    "id": int,
    "type": Literal["IPv6BlockMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv6BlockMove.__doc__ = "IPv6BlockMove moves an IPv6 block with its content. It is kept as a record of the operation."


IPv6DHCPRange = TypedDict("IPv6DHCPRange", {
    "id": int,
    "type": Literal["IPv6DHCPRange"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "usage": Any,
    "utilization": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
}, total=False)
IPv6DHCPRange.__doc__ = "IPv6DHCPRange is a range of addresses that a DHCPv6 server assigns."


IPv6Network = TypedDict("IPv6Network", {
    "id": int,
    "type": Literal["IPv6Network"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "range": str,
    "location": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "defaultZones": Optional[List[Dict[str, Any]]],
    "restrictedZones": Optional[List[Dict[str, Any]]],
    "vlan": Optional[Dict[str, Any]],
    "dynamicUpdateEnabled": bool,
}, total=False)
IPv6Network.__doc__ = "IPv6Network is an IPv6 subnet: a leaf of the address tree that holds addresses and ranges."


IPv6NetworkImport = TypedDict("IPv6NetworkImport", {
    "id": int,
    "type": Literal["IPv6NetworkImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
IPv6NetworkImport.__doc__ = "IPv6NetworkImport imports networks into a block."


IPv6NetworkMove = TypedDict("IPv6NetworkMove", {
    "id": int,
    "type": Literal["IPv6NetworkMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
IPv6NetworkMove.__doc__ = "IPv6NetworkMove moves an IPv6 network with its content. It is kept as a record of the operation."


IPv6ReconciliationPolicy = TypedDict("IPv6ReconciliationPolicy", {
    "id": int,
    "type": Literal["IPv6ReconciliationPolicy"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "enabled": bool,
    "seedRouterAddresses": Optional[List[str]],
    "snmp": Optional[Dict[str, Any]],
    "skipFqdnEnabled": bool,
    "dnsServers": Optional[List[str]],
    "packetsPerSecond": int,
    "notSeenDays": int,
    "neighborBoundaries": Optional[List[str]],
    "neighborLimit": int,
    "vlanTablesEnabled": bool,
    "blackHoleVlan": int,
    "trunkDefaultVlan": int,
    "startDateTime": str,
    "frequency": Optional[str],
    "nextDateTime": Optional[str],
    "lastDateTime": Optional[str],
    "discoveryMethod": Literal["SNMP", "NO_DISCOVERY"],
}, total=False)
IPv6ReconciliationPolicy.__doc__ = "IPv6ReconciliationPolicy sets how hosts on the network are discovered and reconciled with the addresses of the database."


ImportLog = TypedDict("ImportLog", {
    "id": int,
    "type": Literal["ImportLog"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "size": int,
    "modificationDateTime": Optional[str],
    "contents": Optional[str],
}, total=False)
ImportLog.__doc__ = "ImportLog is the log of an import: messages about its rows."


InterfacesService = TypedDict("InterfacesService", {
    "id": int,
    "type": Literal["InterfacesService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "dedicatedManagementEnabled": bool,
    "interfaces": List[Dict[str, Any]],
    "routes": List[Dict[str, Any]],
}, total=False)
InterfacesService.__doc__ = "InterfacesService sets the addresses and routes of the machine."


InternalRootZone = TypedDict("InternalRootZone", {
    "id": int,
    "type": Literal["InternalRootZone"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
    "deploymentEnabled": bool,
}, total=False)
InternalRootZone.__doc__ = "InternalRootZone is the internal root zone of a view. A view has at most one."


KerberosAuthenticator = TypedDict("KerberosAuthenticator", {
    "id": int,
    "type": Literal["KerberosAuthenticator"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "hostname": str,
    "realm": str,
    "keytab": Optional[str],
}, total=False)
KerberosAuthenticator.__doc__ = "KerberosAuthenticator authenticates users against a Kerberos realm."


KerberosRealm = TypedDict("KerberosRealm", {
    "id": int,
    "type": Literal["KerberosRealm"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "domain": str,
}, total=False)
KerberosRealm.__doc__ = "KerberosRealm is a Kerberos realm for the authentication of servers and DHCP updates."


KerberosServicePrincipal = TypedDict("KerberosServicePrincipal", {
    "id": int,
    "type": Literal["KerberosServicePrincipal"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "keyVersionNumber": int,
    "password": str,
}, total=False)
KerberosServicePrincipal.__doc__ = "KerberosServicePrincipal is the name of a service in a realm."


KeyDistributionCenter = TypedDict("KeyDistributionCenter", {
    "id": int,
    "type": Literal["KeyDistributionCenter"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "host": str,
    "port": int,
}, total=False)
KeyDistributionCenter.__doc__ = "KeyDistributionCenter is a server that issues the tickets of a realm."


KeySigningKey = TypedDict("KeySigningKey", {
    "id": int,
    "type": Literal["KeySigningKey"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "algorithm": Optional[Literal["ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448", "RSAMD5", "RSANSEC3SHA256", "RSANSEC3SHA512", "RSASHA1", "RSASHA1NSEC3SHA1", "RSASHA256", "RSASHA512"]],
    "length": Optional[int],
    "state": Optional[Literal["GENERATED", "NOT_GENERATED", "REGENERATE"]],
    "keyGenerationDateTime": Optional[str],
    "privateKey": Optional[str],
    "keyStartDateTime": Optional[str],
    "keyExpirationDateTime": Optional[str],
    "ttl": Optional[str],
    "keyTag": Optional[int],
    "publicKey": Optional[str],
    "flags": Optional[int],
    "dnsKeyRecord": Optional[str],
    "keyProvider": Optional[str],
    "privateKeyEncoding": Optional[Literal["PKCS8", "X509"]],
    "publicKeyEncoding": Optional[Literal["PKCS8", "X509"]],
    "dsRecord": Optional[str],
    "dsConfirmed": bool,
    "dsConfirmedDateTime": Optional[str],
    "dsWithdrawn": bool,
}, total=False)
KeySigningKey.__doc__ = "KeySigningKey is a key that signs the keys of a zone (RFC 6781)."


LDAPAuthenticator = TypedDict("LDAPAuthenticator", {
    "id": int,
    "type": Literal["LDAPAuthenticator"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "hostname": str,
    "port": int,
    "adminDn": str,
    "adminPassword": Optional[str],
    "sslEnabled": bool,
    "startTlsEnabled": bool,
    "caCertificate": Optional[str],
    "schemaType": Literal["ACTIVE_DIRECTORY", "OPENLDAP", "OTHER_LDAP"],
    "searchBase": str,
    "userObjectClass": Optional[str],
    "groupObjectClass": Optional[str],
    "userPrefix": Optional[str],
    "emailPrefix": Optional[str],
    "memberOfPrefix": Optional[str],
    "referralPolicy": Literal["IGNORE", "FOLLOW", "THROW"],
    "aliasDereferencePolicy": Literal["ALWAYS", "NEVER", "FINDING", "SEARCHING"],
}, total=False)
LDAPAuthenticator.__doc__ = "LDAPAuthenticator authenticates users against an LDAP directory."


LeaseAction = TypedDict("LeaseAction", {
    "id": int,
    "type": Literal["LeaseAction"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "address": str,
    "action": Literal["END_LEASE", "CLEAR_ADDRESS", "RESERVE"],
    "state": Optional[Literal["PENDING", "DONE", "NO_EFFECT"]],
    "leaseDateTime": Optional[str],
    "creationDateTime": Optional[str],
    "reservation": Optional[Dict[str, Any]],
}, total=False)
LeaseAction.__doc__ = "LeaseAction is an action on the lease of an address."


LicenseService = TypedDict("LicenseService", {
    "id": int,
    "type": Literal["LicenseService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "clientId": Optional[str],
    "key": Optional[str],
}, total=False)
LicenseService.__doc__ = "LicenseService holds the licence of the machine."


Location = TypedDict("Location", {
    "id": int,
    "type": Literal["Location"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "locode": Optional[str],
    "code": str,
    "country": Optional[str],
    "description": Optional[str],
    "localizedName": Optional[str],
    "subdivision": Optional[str],
    "longitude": Optional[float],
    "latitude": Optional[float],
}, total=False)
Location.__doc__ = "Location is a country, which is created with the database, or a place below a country or another place."


LogLevelSettings = TypedDict("LogLevelSettings", {
    "id": int,
    "type": Literal["LogLevelSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "addressManager": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "restV2": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "zoneImport": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "reconciliationService": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "discoveryEngine": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "snmpClient": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "monitoringService": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
    "rrdTool": Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"],
}, total=False)
LogLevelSettings.__doc__ = "LogLevelSettings sets the log level of each part of the manager. A change takes effect at once. It is rejected where the command line sets the level (--log-level)."


LoginPolicySettings = TypedDict("LoginPolicySettings", {
    "id": int,
    "type": Literal["LoginPolicySettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "enabled": bool,
    "failureLimit": int,
    "failureLimitPeriod": str,
    "delayDuration": str,
}, total=False)
LoginPolicySettings.__doc__ = "LoginPolicySettings sets how repeated failed sign-ins are delayed."


MACAddress = TypedDict("MACAddress", {
    "id": int,
    "type": Literal["MACAddress"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "address": str,
    "macPool": Optional[Dict[str, Any]],
}, total=False)
MACAddress.__doc__ = "MACAddress is the hardware address of a client."


MACPool = TypedDict("MACPool", {
    "id": int,
    "type": Literal["MACPool"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "instantDeploymentEnabled": bool,
}, total=False)
MACPool.__doc__ = "MACPool is a set of hardware addresses that DHCP ranges allow or deny by their options. A hardware address is in at most one pool."


MXRecord = TypedDict("MXRecord", {
    "id": int,
    "type": Literal["MXRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "linkedRecord": Dict[str, Any],
    "priority": int,
}, total=False)
MXRecord.__doc__ = "MXRecord is a mail exchanger of a name (RFC 5321)."


MonitoringSettings = TypedDict("MonitoringSettings", {
    "id": int,
    "type": Literal["MonitoringSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "addressManagerMonitoring": Optional[Dict[str, Any]],
    "serverMonitoring": Optional[Dict[str, Any]],
    "f5ServerMonitoring": Optional[Dict[str, Any]],
}, total=False)
MonitoringSettings.__doc__ = "MonitoringSettings sets what is monitored, and how often."


NAPTRRecord = TypedDict("NAPTRRecord", {
    "id": int,
    "type": Literal["NAPTRRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "order": int,
    "preference": int,
    "service": Optional[str],
    "regularExpression": Optional[str],
    "replacement": Optional[str],
    "flags": Optional[str],
}, total=False)
NAPTRRecord.__doc__ = "NAPTRRecord is a rule that rewrites a name (RFC 3403)."


NTPService = TypedDict("NTPService", {
    "id": int,
    "type": Literal["NTPService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "manualOverrideEnabled": bool,
    "enabled": bool,
    "servers": List[Dict[str, Any]],
}, total=False)
NTPService.__doc__ = "NTPService sets the time servers of the machine."


NamingPolicy = TypedDict("NamingPolicy", {
    "id": int,
    "type": Literal["NamingPolicy"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "policyValues": Optional[List[Dict[str, Any]]],
    "policyRestrictions": Optional[List[Dict[str, Any]]],
    "inheritanceEnabled": Optional[bool],
    "appliedTypes": Optional[List[str]],
}, total=False)
NamingPolicy.__doc__ = "NamingPolicy defines the names allowed in views and zones. A name is the concatenation of the policy's values, and must not match its restrictions."


NamingPolicyConnectorValue = TypedDict("NamingPolicyConnectorValue", {
    "id": int,
    "type": Literal["NamingPolicyConnectorValue"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "connector": str,
}, total=False)
NamingPolicyConnectorValue.__doc__ = "NamingPolicyConnectorValue is a fixed text between other parts."


NamingPolicyIncrementalValue = TypedDict("NamingPolicyIncrementalValue", {
    "id": int,
    "type": Literal["NamingPolicyIncrementalValue"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "incrementalRole": Literal["UNIQUE_NAME", "COUNTER"],
    "incrementType": Literal["DECIMAL", "HEXADECIMAL"],
    "paddingType": Literal["NONE", "SIMPLE", "GLOBAL"],
    "sequenceStart": Optional[int],
    "sequenceIncrement": Optional[int],
    "paddingLength": Optional[int],
    "missingValueReuseEnabled": Optional[bool],
}, total=False)
NamingPolicyIncrementalValue.__doc__ = "NamingPolicyIncrementalValue is a running number. A new name with \"#\" in this position gets the next number."


NamingPolicyIntegerValue = TypedDict("NamingPolicyIntegerValue", {
    "id": int,
    "type": Literal["NamingPolicyIntegerValue"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "min": Optional[int],
    "max": Optional[int],
}, total=False)
NamingPolicyIntegerValue.__doc__ = "NamingPolicyIntegerValue is a number in a range."


NamingPolicyRequiredValue = TypedDict("NamingPolicyRequiredValue", {
    "id": int,
    "type": Literal["NamingPolicyRequiredValue"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "elements": Any,
}, total=False)
NamingPolicyRequiredValue.__doc__ = "NamingPolicyRequiredValue is one of several texts."


NamingPolicyRestriction = TypedDict("NamingPolicyRestriction", {
    "id": int,
    "type": Literal["NamingPolicyRestriction"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "restrictions": Any,
}, total=False)
NamingPolicyRestriction.__doc__ = "NamingPolicyRestriction lists texts that names must not be or contain."


NamingPolicyTextValue = TypedDict("NamingPolicyTextValue", {
    "id": int,
    "type": Literal["NamingPolicyTextValue"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "textType": Literal["LENGTH", "REGULAR_EXPRESSION"],
    "minLength": Optional[int],
    "maxLength": Optional[int],
    "regularExpression": Optional[str],
}, total=False)
NamingPolicyTextValue.__doc__ = "NamingPolicyTextValue is a text with a limited length, or a text that matches a regular expression."


NetworkInterface = TypedDict("NetworkInterface", {
    "id": int,
    "type": Literal["NetworkInterface"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "server": Optional[Dict[str, Any]],
    "secondaryAddress": Optional[str],
    "managementAddress": Optional[str],
    "managementAddressPrefixLength": Optional[int],
    "servicesIpv4Address": Optional[str],
    "servicesIpv4PrefixLength": Optional[int],
    "servicesIpv6Address": Optional[str],
    "servicesIpv6PrefixLength": Optional[int],
    "haBackboneAddress": Optional[str],
    "haBackbonePrefixLength": Optional[int],
    "redundancyEnabled": bool,
    "redundancyScenario": Optional[Literal["ACTIVE_BACKUP", "ACTIVE_ACTIVE"]],
}, total=False)
NetworkInterface.__doc__ = "NetworkInterface is the network interface of a server. It is created, changed and deleted with the server."


NotificationGroup = TypedDict("NotificationGroup", {
    "id": int,
    "type": Literal["NotificationGroup"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "notificationType": Literal["SMTP_SERVICE", "SNMP_TRAP_SERVICE"],
    "eventSubscriptions": List[Dict[str, Any]],
    "subjects": Optional[List[Dict[str, Any]]],
}, total=False)
NotificationGroup.__doc__ = "NotificationGroup receives notifications of events: its users and the members of its groups by mail, or the receivers of SNMP traps."


OAuthAuthorizationServer = TypedDict("OAuthAuthorizationServer", {
    "id": int,
    "type": Literal["OAuthAuthorizationServer"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "description": Optional[str],
    "enabled": bool,
    "userClaim": str,
    "groupClaim": str,
    "emailClaim": str,
    "validationMethod": Literal["AUTHORIZATION_SERVER", "LOCAL"],
    "clientId": Optional[str],
    "clientSecret": Optional[str],
    "introspectionUrl": Optional[str],
    "userInfoUrl": Optional[str],
    "authorizationOption": Optional[Literal["BASIC", "POST"]],
    "audience": Optional[str],
    "issuer": Optional[str],
    "signingCertificate": Optional[str],
    "caCertificate": Optional[str],
}, total=False)
OAuthAuthorizationServer.__doc__ = "OAuthAuthorizationServer authenticates users by OAuth 2.0 tokens."


PasswordPolicySettings = TypedDict("PasswordPolicySettings", {
    "id": int,
    "type": Literal["PasswordPolicySettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "enabled": bool,
    "minLength": Optional[int],
    "maxLength": Optional[int],
    "digitRequired": bool,
    "mixedCaseRequired": bool,
    "specialCharacterRequired": bool,
}, total=False)
PasswordPolicySettings.__doc__ = "PasswordPolicySettings sets the requirements for passwords."


PublishedInterface = TypedDict("PublishedInterface", {
    "id": int,
    "type": Literal["PublishedInterface"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "server": Optional[Dict[str, Any]],
    "primaryAddress": str,
    "secondaryAddress": Optional[str],
}, total=False)
PublishedInterface.__doc__ = "PublishedInterface is the name and the addresses of a server as seen from the other side of NAT."


QuickDeployment = TypedDict("QuickDeployment", {
    "id": int,
    "type": Literal["QuickDeployment"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "status": Optional[Literal["CANCEL"]],
    "message": Optional[str],
    "percentComplete": Optional[int],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "user": Optional[Dict[str, Any]],
    "method": Optional[str],
    "creationDateTime": Optional[str],
}, total=False)
QuickDeployment.__doc__ = "QuickDeployment deploys the changes that its user has made to the records of a zone, and of the other zones of the same primary server."


RADIUSAuthenticator = TypedDict("RADIUSAuthenticator", {
    "id": int,
    "type": Literal["RADIUSAuthenticator"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "hostname": str,
    "timeout": str,
    "port": int,
    "retries": int,
    "sharedSecret": Optional[str],
    "authenticationProtocol": Literal["CHAP", "PAP"],
    "messageAuthenticatorRequired": bool,
}, total=False)
RADIUSAuthenticator.__doc__ = "RADIUSAuthenticator authenticates users against a RADIUS server."


ReconciliationFinding = TypedDict("ReconciliationFinding", {
    "id": int,
    "type": Literal["ReconciliationFinding"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "policy": Optional[Dict[str, Any]],
    "kind": Optional[Literal["UNKNOWN_ADDRESS", "NOT_SEEN", "MAC_ADDRESS_DIFFERS", "HOST_NAME_DIFFERS", "UNKNOWN_NETWORK"]],
    "state": Literal["OPEN", "ACCEPTED", "REJECTED"],
    "address": Optional[str],
    "network": Optional[Dict[str, Any]],
    "seenMacAddress": Optional[str],
    "storedMacAddress": Optional[str],
    "seenHostName": Optional[str],
    "storedHostNames": Optional[List[str]],
    "place": Optional[str],
    "sinceDateTime": Optional[str],
    "change": Optional[str],
}, total=False)
ReconciliationFinding.__doc__ = "ReconciliationFinding is a difference between the network and the database. A run of the policy creates findings, and deletes those that are resolved. A PATCH of the state accepts or rejects a finding. Portolan extension."


ReconciliationRun = TypedDict("ReconciliationRun", {
    "id": int,
    "type": Literal["ReconciliationRun"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "policy": Optional[Dict[str, Any]],
    "state": Optional[Literal["QUEUED", "DONE", "FAILED"]],
    "creationDateTime": Optional[str],
    "endDateTime": Optional[str],
    "pinged": int,
    "seen": int,
    "devices": int,
    "findings": int,
    "messages": Optional[List[str]],
}, total=False)
ReconciliationRun.__doc__ = "ReconciliationRun is a run of a policy. A POST starts a run outside of the schedule. The last 20 runs of a policy are kept. Portolan extension."


ResourceImport = TypedDict("ResourceImport", {
    "id": int,
    "type": Literal["ResourceImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"],
    "into": Optional[str],
    "mode": Literal["ROW_BY_ROW", "ALL_OR_NOTHING", "DRY_RUN"],
    "action": Literal["CREATE_OR_UPDATE", "CREATE", "UPDATE"],
    "resourceType": Optional[str],
    "columns": Optional[Dict[str, Optional[str]]],
    "headers": Optional[Dict[str, Optional[str]]],
    "tag": Optional[str],
    "prune": bool,
    "deleted": int,
}, total=False)
ResourceImport.__doc__ = "ResourceImport is an import of a file whose rows create and change resources."


ResourceRecordImport = TypedDict("ResourceRecordImport", {
    "id": int,
    "type": Literal["ResourceRecordImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
ResourceRecordImport.__doc__ = "ResourceRecordImport imports resource records into a zone."


ResourceRecordMove = TypedDict("ResourceRecordMove", {
    "id": int,
    "type": Literal["ResourceRecordMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
ResourceRecordMove.__doc__ = "ResourceRecordMove moves a record to another name, as in release 9.6. It is kept as a record of the operation."


ResponsePolicy = TypedDict("ResponsePolicy", {
    "id": int,
    "type": Literal["ResponsePolicy"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "policyType": Literal["ALLOWLIST", "BLACKHOLE", "BLOCKLIST", "REDIRECT"],
    "ttl": Optional[int],
    "redirectTarget": Optional[str],
}, total=False)
ResponsePolicy.__doc__ = "ResponsePolicy is a list of names with a common response."


ResponsePolicyItem = TypedDict("ResponsePolicyItem", {
    "id": int,
    "type": Literal["ResponsePolicyItem"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
}, total=False)
ResponsePolicyItem.__doc__ = "ResponsePolicyItem is a name in a response policy."


ResponsePolicyItemImport = TypedDict("ResponsePolicyItemImport", {
    "id": int,
    "type": Literal["ResponsePolicyItemImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
}, total=False)
ResponsePolicyItemImport.__doc__ = "ResponsePolicyItemImport is an import of a file of names into a response policy, one name in each line. It starts at once."


ResponsePolicyZone = TypedDict("ResponsePolicyZone", {
    "id": int,
    "type": Literal["ResponsePolicyZone"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
    "responsePolicyZoneType": Literal["LOCAL", "FEED", "EXTERNAL"],
    "responsePolicy": Optional[Dict[str, Any]],
    "overridePolicyType": Optional[Literal["ALLOWLIST", "BLACKHOLE", "BLOCKLIST", "REDIRECT"]],
    "overrideRefreshTime": Optional[str],
    "redirectTarget": Optional[str],
    "feedCategories": Optional[List[str]],
}, total=False)
ResponsePolicyZone.__doc__ = "ResponsePolicyZone changes the responses of resolvers for some names."


SAMLIdentityProvider = TypedDict("SAMLIdentityProvider", {
    "id": int,
    "type": Literal["SAMLIdentityProvider"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "description": Optional[str],
    "enabled": bool,
    "groupAttribute": Optional[str],
    "emailAttribute": Optional[str],
    "signOnUrl": str,
    "logoutUrl": Optional[str],
    "entityId": str,
    "signingCertificate": str,
}, total=False)
SAMLIdentityProvider.__doc__ = "SAMLIdentityProvider authenticates users by SAML 2.0."


SAMLServiceProviderSettings = TypedDict("SAMLServiceProviderSettings", {
    "id": int,
    "type": Literal["SAMLServiceProviderSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "addressManagerFqdn": str,
    "addressManagerAbsoluteName": str,
    "keyStore": Optional[str],
    "keyStorePassword": Optional[str],
    "serviceKey": Optional[str],
    "metadataUrl": Optional[str],
    "consumeUrl": Optional[str],
    "logoutUrl": Optional[str],
    "nameIdFormat": Literal["UNSPECIFIED", "EMAIL_ADDRESS", "ENTITY", "TRANSIENT", "PERSISTENT", "ENCRYPTED", "X509_SUBJECTNAME", "WIN_QUALIFIED_NAME", "KERBEROS"],
    "signingEnabled": bool,
    "encryptionEnabled": bool,
    "pkcs12": Optional[str],
    "password": Optional[str],
    "organizationName": Optional[str],
    "organizationUrl": Optional[str],
    "contactName": Optional[str],
    "contactEmail": Optional[str],
}, total=False)
SAMLServiceProviderSettings.__doc__ = "SAMLServiceProviderSettings describes the manager to SAML identity providers."


SNMPService = TypedDict("SNMPService", {
    "id": int,
    "type": Literal["SNMPService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "manualOverrideEnabled": bool,
    "enabled": bool,
    "contactName": Optional[str],
    "contactEmail": Optional[str],
    "location": Optional[str],
    "description": Optional[str],
    "pollingInterval": Optional[str],
    "logLevel": Literal["CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"],
    "snmpv1": Optional[Dict[str, Any]],
    "snmpv2c": Optional[Dict[str, Any]],
    "snmpv3": Optional[Dict[str, Any]],
    "trapServers": List[Dict[str, Any]],
}, total=False)
SNMPService.__doc__ = "SNMPService answers SNMP queries, and sends traps."


SRVRecord = TypedDict("SRVRecord", {
    "id": int,
    "type": Literal["SRVRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "linkedRecord": Dict[str, Any],
    "priority": int,
    "weight": int,
    "port": int,
}, total=False)
SRVRecord.__doc__ = "SRVRecord is a server of a service (RFC 2782)."


SSHService = TypedDict("SSHService", {
    "id": int,
    "type": Literal["SSHService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "enabled": bool,
    "tacacsPlusAuthentication": Optional[Dict[str, Any]],
}, total=False)
SSHService.__doc__ = "SSHService allows sign-in over SSH."


SSOEnforcementSettings = TypedDict("SSOEnforcementSettings", {
    "id": int,
    "type": Literal["SSOEnforcementSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "enabled": bool,
    "samlIdentityProviderEnabled": bool,
    "nonSsoAuthenticatorCount": Optional[int],
    "nonSsoGroupCount": Optional[int],
    "localAdminUserCount": Optional[int],
    "localNonAdminUserCount": Optional[int],
}, total=False)
SSOEnforcementSettings.__doc__ = "SSOEnforcementSettings restricts sign-in to SAML."


SVCBRecord = TypedDict("SVCBRecord", {
    "id": int,
    "type": Literal["SVCBRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "linkedRecord": Optional[Dict[str, Any]],
    "priority": int,
    "serviceParameters": Optional[Dict[str, Any]],
    "recordType": Optional[str],
}, total=False)
SVCBRecord.__doc__ = "SVCBRecord is the binding of a service of any kind."


SelectiveDeployment = TypedDict("SelectiveDeployment", {
    "id": int,
    "type": Literal["SelectiveDeployment"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "status": Optional[Literal["CANCEL"]],
    "message": Optional[str],
    "percentComplete": Optional[int],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "user": Optional[Dict[str, Any]],
    "method": Optional[str],
    "creationDateTime": Optional[str],
    "resources": List[Dict[str, Any]],
    "batchMode": Literal["DISABLED", "BATCH_BY_SERVER"],
    "recordScope": Literal["RELATED", "SPECIFIC"],
    "continueOnFailureEnabled": Optional[bool],
    "dynamicRecordDeploymentStrategy": Literal["ABORT", "SKIP", "MAKE_STATIC"],
}, total=False)
SelectiveDeployment.__doc__ = "SelectiveDeployment deploys selected records."


Server = TypedDict("Server", {
    "id": int,
    "type": Literal["Server"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "state": Optional[Literal["ENABLED", "DISABLED", "FAILOVER", "RESET_CONTROL", "REPAIR", "DISABLE"]],
    "username": Optional[str],
    "password": Optional[str],
    "serverGroup": Optional[Dict[str, Any]],
    "connected": bool,
    "monitoringEnabled": Optional[bool],
    "snmp": Optional[Dict[str, Any]],
    "interfaces": List[Dict[str, Any]],
    "location": Optional[Dict[str, Any]],
    "statistics": Optional[Dict[str, Optional[str]]],
    "overrideConfigurationLevelDhcpValidation": bool,
    "overrideConfigurationLevelDnsValidation": bool,
    "dhcpConfigurationValidationEnabled": bool,
    "dnsConfigurationValidationEnabled": bool,
    "dnsZoneValidationEnabled": bool,
    "checkIntegrityValidation": Literal["NONE", "LOCAL", "LOCAL_SIBLING", "FULL", "FULL_SIBLING"],
    "checkMxCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkMxValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNamesValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkNsValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkSrvCnameValidation": Literal["IGNORE", "WARN", "FAIL"],
    "checkWildcardValidation": Literal["IGNORE", "WARN"],
    "privateAddress": Optional[str],
    "encryptedNotificationsEnabled": Optional[bool],
    "managementUrl": Optional[str],
    "selfIpAddress": Optional[str],
    "serviceProviderAccount": Optional[str],
    "serviceProviderApiKey": Optional[str],
    "haBackboneEnabled": bool,
    "haPingAddress": Optional[str],
    "dhcpServicePrincipal": Optional[Dict[str, Any]],
    "dnsServicePrincipal": Optional[Dict[str, Any]],
    "_inheritedFields": Optional[List[str]],
    "servicePoint": Optional[str],
    "profile": Literal["ADONIS_XMB4", "ADONIS_XMB3", "ADONIS_XMB2", "OTHER_DNS_SERVER", "AFILIAS_DNS_SERVER", "ADONIS_800", "ADONIS_1200", "ADONIS_1900", "ADONIS_1950", "DNS_DHCP_SERVER_20", "DNS_DHCP_SERVER_45", "DNS_DHCP_SERVER_60", "DNS_DHCP_SERVER_100", "DNS_DHCP_SERVER_100_D", "LTM", "GTM", "DNS_DHCP_GEN4_7000", "DNS_DHCP_GEN4_5000", "DNS_DHCP_GEN4_4000", "DNS_DHCP_GEN4_2000", "CLOUD_DNS_SERVER", "PORTOLAN_SERVICE_POINT"],
    "dedicatedManagementEnabled": bool,
    "haRole": Optional[Literal["NOT_AVAILABLE", "PASSIVE", "ACTIVE"]],
    "haPeerConnectionState": Optional[Literal["DEGRADED", "FAILOVER", "HEALTHY", "INITIALIZING", "REPAIR", "SYNCHRONIZING", "UNKNOWN", "UP_TO_DATE"]],
    "haDiskState": Optional[Literal["DEGRADED", "FAILOVER", "HEALTHY", "INITIALIZING", "REPAIR", "SYNCHRONIZING", "UNKNOWN", "UP_TO_DATE"]],
    "hsmSupportEnabled": bool,
    "interfaceRedundancyEnabled": bool,
    "transferKey": Optional[Dict[str, Any]],
}, total=False)
Server.__doc__ = "Server is a machine that serves DNS or DHCP."


ServerFile = TypedDict("ServerFile", {
    "id": int,
    "type": Literal["ServerFile"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "permissions": Optional[List[str]],
    "size": Optional[int],
    "owner": Optional[str],
    "group": Optional[str],
    "modificationDateTime": Optional[str],
}, total=False)
ServerFile.__doc__ = "ServerFile is a file of a server; the collection is always empty."


ServerGroup = TypedDict("ServerGroup", {
    "id": int,
    "type": Literal["ServerGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "multiPrimary": Optional[bool],
    "servers": Optional[List[Dict[str, Any]]],
}, total=False)
ServerGroup.__doc__ = "ServerGroup is a group of servers that share options and are deployed together."


ServerGroupInterface = TypedDict("ServerGroupInterface", {
    "id": int,
    "type": Literal["ServerGroupInterface"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
}, total=False)
ServerGroupInterface.__doc__ = "ServerGroupInterface is the interface of a group whose servers write the same zones; such groups do not exist."


ServerLog = TypedDict("ServerLog", {
    "id": int,
    "type": Literal["ServerLog"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "size": Optional[int],
    "modificationDateTime": Optional[str],
}, total=False)
ServerLog.__doc__ = "ServerLog is a log of a server. The collection is always empty; the fleet shows the logs of service points."


ServerPatch = TypedDict("ServerPatch", {
    "id": int,
    "type": Literal["ServerPatch"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "publicKey": Optional[str],
}, total=False)
ServerPatch.__doc__ = "ServerPatch is a patch for servers; every patch is rejected."


ServerPatchApplication = TypedDict("ServerPatchApplication", {
    "id": int,
    "type": Literal["ServerPatchApplication"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "patch": Optional[Dict[str, Any]],
    "dateTime": Optional[str],
    "version": Optional[str],
}, total=False)
ServerPatchApplication.__doc__ = "ServerPatchApplication is the application of a patch to a server; every one is rejected."


StartOfAuthority = TypedDict("StartOfAuthority", {
    "id": int,
    "type": Literal["StartOfAuthority"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "serverScope": Optional[Dict[str, Any]],
    "value": Any,
    "code": Optional[int],
    "resource": Optional[Dict[str, Any]],
    "definition": Optional[Dict[str, Any]],
}, total=False)
StartOfAuthority.__doc__ = "StartOfAuthority sets the contents of the SOA records of zones. Its value is a list of eight: time to live, primary server, mail address, serial (auto, date or a number), refresh, retry, expire and minimum. A null entry means the default."


StartOfAuthorityDefinition = TypedDict("StartOfAuthorityDefinition", {
    "id": int,
    "type": Literal["StartOfAuthorityDefinition"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "assignableTypes": Optional[List[str]],
    "code": Optional[int],
    "displayName": Optional[str],
    "description": Optional[str],
    "valueFormat": Any,
    "otherNames": Optional[List[str]],
}, total=False)
StartOfAuthorityDefinition.__doc__ = "StartOfAuthorityDefinition defines the start of authority of zones."


SyslogService = TypedDict("SyslogService", {
    "id": int,
    "type": Literal["SyslogService"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "serverVersion": Optional[str],
    "manualOverrideEnabled": bool,
    "iso8601TimestampsEnabled": Optional[bool],
    "servers": List[Dict[str, Any]],
}, total=False)
SyslogService.__doc__ = "SyslogService sends the log of the machine to syslog servers."


SystemLog = TypedDict("SystemLog", {
    "id": int,
    "type": Literal["SystemLog"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "size": Optional[int],
    "modificationDateTime": Optional[str],
}, total=False)
SystemLog.__doc__ = "SystemLog is a log of the manager that answers the request: its own log, or the access log or audit log if these are written to files. Its content is downloaded as application/octet-stream."


SystemSettings = TypedDict("SystemSettings", {
    "id": int,
    "type": Literal["SystemSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "hostname": Optional[str],
    "version": Optional[str],
    "address": Optional[str],
    "interfaceRedundancyEnabled": bool,
    "activeSessions": Optional[int],
    "activeSessionCount": Optional[int],
}, total=False)
SystemSettings.__doc__ = "SystemSettings describes the manager itself."


TACACSPlusAuthenticator = TypedDict("TACACSPlusAuthenticator", {
    "id": int,
    "type": Literal["TACACSPlusAuthenticator"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "hostname": str,
    "timeout": str,
    "port": int,
    "sharedSecret": Optional[str],
    "authenticationProtocol": Literal["CHAP", "PAP"],
    "groupAttribute": Optional[str],
    "attributes": List[Dict[str, Any]],
}, total=False)
TACACSPlusAuthenticator.__doc__ = "TACACSPlusAuthenticator authenticates users against a TACACS+ server."


TFTPDeploymentRole = TypedDict("TFTPDeploymentRole", {
    "id": int,
    "type": Literal["TFTPDeploymentRole"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "roleType": Optional[Literal["TFTP"]],
    "server": Dict[str, Any],
}, total=False)
TFTPDeploymentRole.__doc__ = "TFTPDeploymentRole assigns the server that serves the files of a TFTP group."


TFTPFile = TypedDict("TFTPFile", {
    "id": int,
    "type": Literal["TFTPFile"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "version": Optional[str],
    "description": Optional[str],
    "size": int,
    "md5Checksum": Optional[str],
    "sha256Checksum": Optional[str],
}, total=False)
TFTPFile.__doc__ = "TFTPFile is a file. It is uploaded as multipart/form-data and downloaded as application/octet-stream."


TFTPFolder = TypedDict("TFTPFolder", {
    "id": int,
    "type": Literal["TFTPFolder"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
}, total=False)
TFTPFolder.__doc__ = "TFTPFolder is a folder of files and folders."


TFTPGroup = TypedDict("TFTPGroup", {
    "id": int,
    "type": Literal["TFTPGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
}, total=False)
TFTPGroup.__doc__ = "TFTPGroup is a group of files that machines download when they start."


TSIGKey = TypedDict("TSIGKey", {
    "id": int,
    "type": Literal["TSIGKey"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "algorithm": Literal["MD5", "SHA1", "SHA256", "SHA512"],
    "length": int,
    "state": Optional[Literal["GENERATED", "NOT_GENERATED", "REGENERATE"]],
    "keyGenerationDateTime": Optional[str],
    "privateKey": Optional[str],
    "sharedSecret": Optional[str],
}, total=False)
TSIGKey.__doc__ = "TSIGKey is a key that servers and clients use to sign messages (RFC 8945). Only the response to the request that created the secret contains it."


TXTRecord = TypedDict("TXTRecord", {
    "id": int,
    "type": Literal["TXTRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "text": Optional[str],
}, total=False)
TXTRecord.__doc__ = "TXTRecord is a text (RFC 1035 section 3.3.14)."


Tag = TypedDict("Tag", {
    "id": int,
    "type": Literal["Tag"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
}, total=False)
Tag.__doc__ = "Tag is a label for any resource. It is in a tag group or below another tag."


TagGroup = TypedDict("TagGroup", {
    "id": int,
    "type": Literal["TagGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
}, total=False)
TagGroup.__doc__ = "TagGroup is a group of tags of one kind, such as sites or owners."


Task = TypedDict("Task", {
    "id": int,
    "type": Literal["Task"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "priority": Literal["ALL", "LOW", "NORMAL", "HIGH"],
    "state": Literal["NOT_STARTED", "IN_PROGRESS", "COMPLETED", "WAITING_FOR_OTHER", "DEFERRED"],
    "percentComplete": int,
    "startDateTime": Optional[str],
    "dueDateTime": Optional[str],
    "comment": Optional[str],
}, total=False)
Task.__doc__ = "Task is an entry in a user's to-do list."


TrustRelationship = TypedDict("TrustRelationship", {
    "id": int,
    "type": Literal["TrustRelationship"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "address": str,
    "username": str,
    "password": str,
    "keyGenerationDateTime": Optional[str],
    "state": Optional[Literal["TRUSTED", "UNTRUSTED", "REFRESH_KEYS"]],
}, total=False)
TrustRelationship.__doc__ = "TrustRelationship is the trust in another manager that the database is replicated to."


URIRecord = TypedDict("URIRecord", {
    "id": int,
    "type": Literal["URIRecord"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "ttl": Optional[int],
    "absoluteName": Optional[str],
    "comment": Optional[str],
    "dynamic": bool,
    "recordType": Optional[str],
    "priority": int,
    "weight": int,
    "target": str,
}, total=False)
URIRecord.__doc__ = "URIRecord is a URI for a name (RFC 7553)."


User = TypedDict("User", {
    "id": int,
    "type": Literal["User"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "password": Optional[str],
    "authenticator": Optional[Dict[str, Any]],
    "email": str,
    "phoneNumber": Optional[str],
    "securityPrivilege": Literal["NO_ACCESS", "VIEW_MY_ACCESS_RIGHTS", "VIEW_OTHERS_ACCESS_RIGHTS", "CHANGE_ACCESS_RIGHTS", "ADD_ACCESS_RIGHTS", "DELETE_ACCESS_RIGHTS", "ADMINISTRATOR"],
    "historyPrivilege": Literal["HIDE", "VIEW_HISTORY_LIST", "ADMINISTRATOR"],
    "accessType": Literal["GUI", "API", "GUI_AND_API"],
    "passwordResetRequired": bool,
    "accountLocked": bool,
    "x509Required": bool,
    "administrativeAccessLevels": Optional[Dict[str, Optional[str]]],
    "administrativeAccessRights": Any,
}, total=False)
User.__doc__ = "User is a person or a program that signs in."


UserDefinedFieldDefinition = TypedDict("UserDefinedFieldDefinition", {
    "id": int,
    "type": Literal["UserDefinedFieldDefinition"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "displayName": str,
    "resourceType": Literal["ACL", "AbstractKeySigningKey", "AbstractNetworkInterface", "AbstractServer", "AbstractZoneSigningKey", "AddressManagerAuthenticator", "AliasRecord", "Authenticator", "Configuration", "DHCPClientOption", "DHCPDeploymentRole", "DHCPForwardZone", "DHCPReverseZone", "DHCPServiceOption", "DHCPUniqueIdentifier", "DHCPVendorOption", "DHCPVendorOptionDefinition", "DHCPZone", "DHCPZoneGroup", "DHCPv4ClientClass", "DHCPv4ClientOption", "DHCPv4CustomClientOptionDefinition", "DHCPv4RawOption", "DHCPv4ServiceOption", "DHCPv4Subclass", "DHCPv6ClientOption", "DHCPv6RawOption", "DHCPv6ServiceOption", "DNS64", "DNSDeploymentRole", "DNSOption", "DNSRawOption", "DNSSECSigningPolicy", "DefaultClientOption", "DefaultDHCPOption", "DefaultDHCPServiceOption", "DefaultDNSOption", "DeploymentRole", "DeploymentSchedule", "Device", "DeviceSubtype", "DeviceType", "ENUMNumberZone", "ENUMZone", "EntrustKeySigningKey", "EntrustZoneSigningKey", "ExternalHostRecord", "GenericRecord", "HAServer", "HINFORecord", "HTTPSRecord", "HSMConfiguration", "HSMKeySigningKey", "HSMServer", "HSMZoneSigningKey", "HostRecord", "IPServerInterface", "IPv4Address", "IPv4Block", "IPv4DHCPRange", "IPv4Group", "IPv4Network", "IPv4Prefix", "IPv4Range", "IPv4ReconciliationPolicy", "IPv4Template", "IPv6Address", "IPv6Block", "IPv6DHCPRange", "IPv6Network", "IPv6Prefix", "IPv6ReconciliationPolicy", "InternalRootZone", "KerberosAuthenticator", "KerberosRealm", "KerberosServicePrincipal", "KeyDistributionCenter", "KeySigningKey", "LDAPAuthenticator", "Location", "LoginPolicySettings", "MACAddress", "MACPool", "MXRecord", "NAPTRRecord", "NamingPolicy", "NamingPolicyRestriction", "NetworkInterface", "NotificationGroup", "OAuthAuthorizationServer", "PasswordPolicySettings", "PublishedInterface", "RADIUSAuthenticator", "RawOption", "Report", "ReportSchedule", "ResourceRecord", "ResponsePolicy", "ResponsePolicyZone", "SAMLIdentityProvider", "SAMLServiceProviderSettings", "SRVRecord", "SVCBRecord", "Server", "ServerGroup", "ServerInterface", "ServiceOption", "SigningKey", "StartOfAuthority", "TACACSPlusAuthenticator", "TFTPDeploymentRole", "TFTPFile", "TFTPFolder", "TFTPGroup", "TFTPNode", "TSIGKey", "TXTRecord", "URIRecord", "Tag", "TagGroup", "Task", "User", "UserGroup", "VendorProfile", "View", "VirtualInterface", "X509Authenticator", "Zone", "ZoneSigningKey", "ZoneTemplate"],
    "resourceTypes": Optional[List[str]],
    "dataType": Literal["BOOLEAN", "DATE", "EMAIL", "INTEGER", "LONG", "TEXT", "URL", "WORKFLOW"],
    "defaultValue": Optional[str],
    "required": Optional[bool],
    "predefinedValues": Optional[List[str]],
    "indexed": Optional[bool],
    "validationProperties": Optional[Dict[str, Any]],
}, total=False)
UserDefinedFieldDefinition.__doc__ = "UserDefinedFieldDefinition defines a user-defined field of the resources of a type."


UserDefinedLink = TypedDict("UserDefinedLink", {
    "id": int,
    "type": Literal["UserDefinedLink"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "linkDescription": Optional[str],
    "linkDefinition": Dict[str, Any],
    "source": Dict[str, Any],
    "destination": Dict[str, Any],
}, total=False)
UserDefinedLink.__doc__ = "UserDefinedLink is a link between two resources. The API shows it as the resource at its other end."


UserDefinedLinkDefinition = TypedDict("UserDefinedLinkDefinition", {
    "id": int,
    "type": Literal["UserDefinedLinkDefinition"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "displayName": str,
    "description": Optional[str],
    "sourceTypes": List[str],
    "destinationTypes": List[str],
}, total=False)
UserDefinedLinkDefinition.__doc__ = "UserDefinedLinkDefinition defines a kind of link between resources."


UserGroup = TypedDict("UserGroup", {
    "id": int,
    "type": Literal["UserGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "groupType": Literal["ADDRESS_MANAGER", "LDAP", "SSO", "TACACS_PLUS"],
    "description": Optional[str],
    "administratorPrivilege": bool,
    "administrativeAccessRights": Any,
    "authenticator": Optional[Dict[str, Any]],
}, total=False)
UserGroup.__doc__ = "UserGroup is a group of users."


UserSession = TypedDict("UserSession", {
    "id": int,
    "type": Literal["UserSession"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "username": str,
    "password": str,
    "signInCode": Optional[str],
    "apiToken": Optional[str],
    "apiTokenExpirationDateTime": Optional[str],
    "basicAuthenticationCredentials": Optional[str],
    "remoteAddress": Optional[str],
    "readOnly": Optional[bool],
    "loginDateTime": Optional[str],
    "logoutDateTime": Optional[str],
    "state": Optional[Literal["LOGGED_IN", "LOGGED_OUT", "TIMED_OUT", "EXPIRED", "LOGIN_FAIL", "TERMINATED"]],
    "response": Optional[str],
    "user": Optional[Dict[str, Any]],
    "authenticator": Optional[Dict[str, Any]],
}, total=False)
UserSession.__doc__ = "UserSession is the time between a user's login and logout."


VLAN = TypedDict("VLAN", {
    "id": int,
    "type": Literal["VLAN"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "vlanGroup": Optional[Dict[str, Any]],
    "number": Optional[int],
    "description": Optional[str],
}, total=False)
VLAN.__doc__ = "VLAN is a virtual LAN (IEEE 802.1Q) of a group. Networks refer to it. Portolan extension."


VLANGroup = TypedDict("VLANGroup", {
    "id": int,
    "type": Literal["VLANGroup"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "description": Optional[str],
    "firstNumber": int,
    "lastNumber": int,
    "location": Optional[Dict[str, Any]],
}, total=False)
VLANGroup.__doc__ = "VLANGroup is a set of VLANs with unique numbers, such as those of a site or a switched domain. Portolan extension."


ValidationDeployment = TypedDict("ValidationDeployment", {
    "id": int,
    "type": Literal["ValidationDeployment"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "status": Optional[Literal["CANCEL"]],
    "message": Optional[str],
    "percentComplete": Optional[int],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "user": Optional[Dict[str, Any]],
    "method": Optional[str],
    "creationDateTime": Optional[str],
    "service": Literal["DNS", "DHCPv4", "DHCPv6"],
}, total=False)
ValidationDeployment.__doc__ = "ValidationDeployment checks the content of a server, and deploys nothing."


VendorProfile = TypedDict("VendorProfile", {
    "id": int,
    "type": Literal["VendorProfile"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "identifier": str,
    "description": str,
}, total=False)
VendorProfile.__doc__ = "VendorProfile is a vendor of DHCP clients: the identifier that its clients send in option 60, and its options."


View = TypedDict("View", {
    "id": int,
    "type": Literal["View"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "deviceRegistrationEnabled": bool,
    "deviceRegistrationPortalAddress": Optional[str],
    "liveDeployment": bool,
    "followedServer": Optional[Dict[str, Any]],
    "restrictedRanges": Optional[List[Dict[str, Any]]],
}, total=False)
View.__doc__ = "View is a DNS namespace within a configuration. The same name may have different records in different views."


WebAccessSettings = TypedDict("WebAccessSettings", {
    "id": int,
    "type": Literal["WebAccessSettings"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "server": Optional[Dict[str, Any]],
    "httpEnabled": bool,
    "httpToHttpsRedirectionEnabled": bool,
    "httpsEnabled": bool,
    "authenticator": Optional[Dict[str, Any]],
    "privateKey": Optional[str],
    "password": Optional[str],
    "certificate": Optional[str],
    "caCertificates": Optional[List[str]],
}, total=False)
WebAccessSettings.__doc__ = "WebAccessSettings describes how the manager serves its APIs. The command line sets this when the manager starts."


Webhook = TypedDict("Webhook", {
    "id": int,
    "type": Literal["Webhook"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "url": str,
    "secret": str,
    "collections": List[str],
    "parent": Optional[int],
    "enabled": bool,
    "state": Optional[Literal["RUNNING", "FAILING", "STOPPED", "DISABLED"]],
    "failures": int,
    "message": Optional[str],
    "deliveredDateTime": Optional[str],
}, total=False)
Webhook.__doc__ = "Webhook sends changes to a program that listens at a URL."


WorkflowRequest = TypedDict("WorkflowRequest", {
    "id": int,
    "type": Literal["WorkflowRequest"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Literal["PENDING", "APPROVED", "DENIED"],
    "requestType": Optional[Literal["ADD_ZONE", "ADD_IPV4_NETWORK", "ASSIGN_IPV4_ADDRESS", "ADD_HOST_RECORD", "ADD_ALIAS_RECORD", "ADD_RESOURCE_RECORD", "UPDATE_ZONE", "UPDATE_IPV4_NETWORK", "UPDATE_READONLY_IPV4_NETWORK", "UPDATE_IPV4_ADDRESS", "CHANGE_IPV4_ADDRESS_STATE", "UPDATE_HOST_RECORD", "UPDATE_RESOURCE_RECORD", "UPDATE_ALIAS_RECORD", "RENAME_RESOURCE_RECORD", "DELETE_RESOURCE"]],
    "creator": Optional[Dict[str, Any]],
    "resource": Optional[Dict[str, Any]],
    "dependentResource": Optional[Dict[str, Any]],
    "modifier": Optional[Dict[str, Any]],
    "creationDateTime": Optional[str],
    "modificationDateTime": Optional[str],
    "operation": Optional[str],
    "resourceId": Optional[int],
    "resourceType": Optional[str],
    "fieldUpdates": Any,
    "dependentRequest": Optional[Dict[str, Any]],
    "comment": Optional[str],
    "description": Optional[str],
    "decisionComment": Optional[str],
    "principal": Optional[str],
    "decider": Optional[str],
}, total=False)
WorkflowRequest.__doc__ = "WorkflowRequest is a requested change that other users approve or deny."


X509Authenticator = TypedDict("X509Authenticator", {
    "id": int,
    "type": Literal["X509Authenticator"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "secondaryAuthenticator": Optional[Dict[str, Any]],
    "primaryServerUrl": str,
    "secondaryServerUrl": Optional[str],
    "ldapUserMatchOption": Literal["NONE", "CUSTOM_USER_PREFIX_MATCH", "STRICT_DN_MATCH"],
    "caCertificates": List[str],
}, total=False)
X509Authenticator.__doc__ = "X509Authenticator authenticates users by client certificates and checks their revocation by OCSP."


Zone = TypedDict("Zone", {
    "id": int,
    "type": Literal["Zone"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "view": Optional[Dict[str, Any]],
    "deploymentEnabled": bool,
    "dynamicUpdateEnabled": bool,
    "template": Optional[Dict[str, Any]],
    "signed": bool,
    "signingPolicy": Optional[Dict[str, Any]],
    "absoluteName": Optional[str],
    "restrictedRanges": Optional[List[Dict[str, Any]]],
}, total=False)
Zone.__doc__ = "Zone is a DNS zone in a view or below another zone."


ZoneImport = TypedDict("ZoneImport", {
    "id": int,
    "type": Literal["ZoneImport"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "contentType": Optional[str],
    "size": int,
    "creationDateTime": Optional[str],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "rows": int,
    "created": int,
    "updated": int,
    "unchanged": int,
    "refused": int,
    "message": Optional[str],
    "comment": Optional[str],
    "user": Optional[Dict[str, Any]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_ERRORS", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "headers": Optional[Dict[str, Optional[str]]],
    "resources": Any,
}, total=False)
ZoneImport.__doc__ = "ZoneImport imports zones into a view."


ZoneMove = TypedDict("ZoneMove", {
    "id": int,
    "type": Literal["ZoneMove"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "transaction": Optional[Dict[str, Any]],
    "destination": Dict[str, Any],
    "source": Optional[Dict[str, Any]],
}, total=False)
ZoneMove.__doc__ = "ZoneMove moves a zone to another name, as in release 9.6. It is kept as a record of the operation."


ZoneSigningKey = TypedDict("ZoneSigningKey", {
    "id": int,
    "type": Literal["ZoneSigningKey"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
    "algorithm": Optional[Literal["ECDSAP256SHA256", "ECDSAP384SHA384", "ED25519", "ED448", "RSAMD5", "RSANSEC3SHA256", "RSANSEC3SHA512", "RSASHA1", "RSASHA1NSEC3SHA1", "RSASHA256", "RSASHA512"]],
    "length": Optional[int],
    "state": Optional[Literal["GENERATED", "NOT_GENERATED", "REGENERATE"]],
    "keyGenerationDateTime": Optional[str],
    "privateKey": Optional[str],
    "keyStartDateTime": Optional[str],
    "keyExpirationDateTime": Optional[str],
    "ttl": Optional[str],
    "keyTag": Optional[int],
    "publicKey": Optional[str],
    "flags": Optional[int],
    "dnsKeyRecord": Optional[str],
    "keyProvider": Optional[str],
    "privateKeyEncoding": Optional[Literal["PKCS8", "X509"]],
    "publicKeyEncoding": Optional[Literal["PKCS8", "X509"]],
}, total=False)
ZoneSigningKey.__doc__ = "ZoneSigningKey is a key that signs the records of a zone (RFC 6781)."


ZoneTemplate = TypedDict("ZoneTemplate", {
    "id": int,
    "type": Literal["ZoneTemplate"],
    "name": str,
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "configuration": Optional[Dict[str, Any]],
}, total=False)
ZoneTemplate.__doc__ = "ZoneTemplate contains records for zones."


ZoneTemplateApplication = TypedDict("ZoneTemplateApplication", {
    "id": int,
    "type": Literal["ZoneTemplateApplication"],
    "name": Optional[str],
    "userDefinedFields": Optional[Dict[str, Optional[str]]],
    "state": Optional[Literal["PENDING", "QUEUED", "RUNNING", "CANCELLED", "CANCELLING", "COMPLETED", "COMPLETED_WITH_WARNINGS", "FAILED", "UNKNOWN"]],
    "startDateTime": Optional[str],
    "completionDateTime": Optional[str],
    "conflictResolutionStrategy": Optional[Literal["USE_EXISTING", "OVERWRITE", "ABORT"]],
}, total=False)
ZoneTemplateApplication.__doc__ = "ZoneTemplateApplication applies zone templates to zones. It is kept as a record of the operation."
