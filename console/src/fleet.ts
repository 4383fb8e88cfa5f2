// Service points as the fleet API returns them.
import { get, query } from "./api"
import { usePolled } from "./data"

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

/** Reports whether an application does not work. */
export function isBroken(a: Application) {
  return a.status === "UNHEALTHY" || a.status === "DEPLOY_FAILED"
}

/** Returns the state to show: a lost connection and a broken application take precedence over a healthy status. */
export function stateOf(p: Point) {
  if (p.status !== "HEALTHY") return p.status
  if (p.connectionStatus === "NOT_CONNECTED") return "NOT_CONNECTED"
  return p.applications.some(isBroken) ? "APPLICATION_UNHEALTHY" : p.status
}

/** The path of the service points. */
export const base = "/user/api/v1/fleetInstances"

/** All service points that match a filter. */
export function useFleet(every = 1500, filter: Record<string, string> = {}) {
  const path = base + query(filter)
  return usePolled<Point[]>(path, async signal => (await get<{ data: Point[] }>(path, { signal })).data, every)
}
