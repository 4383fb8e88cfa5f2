package published

import "sync"

// operationNouns are the nouns of types in the published enumeration of Transaction.operation, where they do not follow from the type
// names.
var operationNouns = map[string]string{
	"DHCPv4Subclass": "DHCPV4_CLIENT_SUBCLASS", "DHCPv4CustomClientOptionDefinition": "CUSTOM_DHCPV4_CLIENT_OPTION_DEFINITION",
	"DHCPVendorOption": "VENDOR_CLIENT_OPTION", "DHCPVendorOptionDefinition": "VENDOR_OPTION_DEFINITION",
	"DHCPForwardZone": "FORWARD_DHCP_ZONE", "DHCPReverseZone": "REVERSE_DHCP_ZONE", "DeploymentSchedule": "DEPLOYMENT_SCHEDULER",
	"ENUMZone": "E164_ZONE", "ENUMNumberZone": "E164_ZONE", "KerberosServicePrincipal": "SERVICE_PRINCIPAL", "KeyDistributionCenter": "KDC",
	"NamingPolicyConnectorValue": "NAMING_POLICY_VALUE_CONNECTOR", "NamingPolicyIncrementalValue": "NAMING_POLICY_VALUE_INCREMENTAL",
	"NamingPolicyIntegerValue": "NAMING_POLICY_VALUE_INTEGER", "NamingPolicyRequiredValue": "NAMING_POLICY_VALUE_REQUIRED",
	"NamingPolicyTextValue": "NAMING_POLICY_VALUE_TEXT", "NamingPolicyRestriction": "NAMING_RESTRICTION",
	"OAuthAuthorizationServer": "OAUTH_SERVER", "TACACSPlusAuthenticator": "TACACSPLUS_AUTHENTICATOR",
	"PublishedInterface": "SERVER_PUBLISHED_INTERFACE",
	"DenyMACPool":        "MAC_POOL", "SAMLServiceProviderSettings": "SAML_SERVICE_PROVIDER",
}

// operationNames are the operations that the published enumeration does not name by a verb and a noun, by the verb and the type.
var operationNames = map[string]string{
	"UPDATE KeyDistributionCenter": "UPDATE_KERBEROS_DOMAIN_CONTROLLER", "ADD NetworkInterface": "ADD_SERVER_NETWORK_INTERFACE",
	"UPDATE NetworkInterface": "UPDATE_SERVER_INTERFACE", "ADD AdministrativeAccessRight": "ADD_ADMINISTRATIVE_ACCESS_RIGHTS",
	"DELETE HAServer": "BREAK_HA_SERVER", "ADD IPv4Address": "ASSIGN_IPV4_ADDRESS", "ADD IPv6Block": "ADD_IPV6_GLOBAL_ADDRESS_BLOCK",
	"DELETE MACPool": "DELETE_USER_MAC_POOL", "DELETE DenyMACPool": "DELETE_USER_MAC_POOL", "ADD ServerPatch": "ADD_SERVER_PATCH_INFO",
	"ADD ServerPatchApplication": "PATCH_SERVER", "ADD IPv4BlockMerge": "MERGE_IPV4_BLOCKS", "ADD IPv4NetworkMerge": "MERGE_IPV4_NETWORKS",
	"ADD IPv4DHCPRangeMerge": "MERGE_IPV4_DHCP_RANGES", "ADD IPv4BlockSplit": "SPLIT_IPV4_BLOCK", "ADD IPv4NetworkSplit": "SPLIT_IPV4_NETWORK",
	"ADD IPv4AddressMove": "MOVE_IPV4_ADDRESS", "ADD IPv6AddressMove": "MOVE_IPV6_ADDRESS_ASSIGNMENT", "ADD IPv4BlockMove": "MOVE_IPV4_BLOCK",
	"ADD IPv6BlockMove": "MOVE_IPV6_BLOCK", "ADD IPv4NetworkMove": "MOVE_IPV4_NETWORK", "ADD IPv6NetworkMove": "MOVE_IPV6_NETWORK",
	"ADD ResourceRecordMove": "MOVE_RESOURCE_RECORD", "ADD ZoneMove": "MOVE_ZONE", "ADD DeploymentRoleMove": "MOVE_DEPLOYMENT_ROLES",
	"ADD IPv4TemplateApplication": "APPLY_IPV4_TEMPLATE", "ADD ZoneTemplateApplication": "REAPPLY_ZONE_TEMPLATE",
	"UPDATE LoginPolicySettings": "UPDATE_LOGIN_SECURITY_SETTINGS", "UPDATE PasswordPolicySettings": "UPDATE_USER_PASSWORD_POLICY",
	"UPDATE MonitoringSettings": "UPDATE_SERVER_MONITORING_SETTINGS", "UPDATE AnycastService": "CONFIGURE_SERVER_ANYCAST_SERVICE",
	"UPDATE FirewallService": "CONFIGURE_SERVER_FIREWALL_SERVICE", "UPDATE NTPService": "CONFIGURE_SERVER_NTP_SERVICE",
	"UPDATE SNMPService": "CONFIGURE_SERVER_SNMP_SERVICE", "UPDATE SSHService": "CONFIGURE_SERVER_SSH_SERVICE",
	"UPDATE SyslogService": "CONFIGURE_SERVER_SYSLOG_SERVICE", "UPDATE InterfacesService": "CONFIGURE_SERVER_ADDITIONAL_IP_ADDRESSES_SERVICE",
	"ADD UserDefinedLink": "ADD_RESOURCE_LINK", "DELETE UserDefinedLink": "DELETE_RESOURCE_LINK",
}

// ChangeOperation returns the word of the published enumeration of Transaction.operation for a change of a type. verb is ADD, UPDATE or
// DELETE, and noun the noun that follows from the name of the type. A published type whose change has no word gets the verb with RESOURCE.
func ChangeOperation(verb, typeName, noun string) string {
	if name := operationNames[verb+" "+typeName]; name != "" {
		return name
	}
	if other := operationNouns[typeName]; other != "" {
		noun = other
	}
	name := verb + "_" + noun
	_, earlier := Types()[typeName]
	_, later := LaterTypes()[typeName]
	if (earlier || later) && !changeOperations()[name] {
		return verb + "_RESOURCE"
	}
	return name
}

// changeOperations returns the words of the published enumeration, of either release.
var changeOperations = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, types := range []map[string]Type{Types(), LaterTypes()} {
		for _, name := range types["Transaction"].Fields["operation"].Enum {
			all[name] = true
		}
	}
	return all
})
