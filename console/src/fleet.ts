// Service points as the fleet API returns them.
export interface Application {
  id: string
  name: string
  version: string
  status: string
  errorConditions: string[]
  anycastIPAddress: unknown[]
  configuration?: unknown
}
export interface Point {
  id: string
  name: string
  description: string | null
  status: string
  lastSeen: number | null
  connectionStatus: string
  version: string | null
  updateStatus: string
  targetVersion?: string
  errorConditions: string[]
  updateError?: string
  labels?: Record<string, string>
  platform?: string
  nodeCount?: number
  pending?: boolean
  nodes: {
    id: string
    name: string
    hostname: string
    ipv4CIDRAddress: string
    ipv4GatewayAddress?: string
    ipv6CIDRAddress: string
    ipv6GatewayAddress?: string
    dnsServers?: string[]
    diagnosticsUrl?: string
    addresses: { type: string; ipAddress: string }[]
  }[]
  applications: Application[]
}
