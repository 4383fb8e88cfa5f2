// Values of DHCP options as text (RFC 2132, RFC 8415).
import { address } from "./space"

/** The codes of options with IPv4 addresses, with times in seconds, and with numbers. */
const addressCodes = [
    1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 28, 32, 41, 42, 44, 45, 48, 49, 50, 54, 65, 68, 69, 70, 71, 72, 73, 74, 75, 76,
    150,
  ],
  timeCodes = [24, 35, 38, 51, 58, 59],
  numberCodes = [13, 19, 20, 22, 23, 26, 27, 29, 30, 31, 34, 36, 37, 39, 46, 53, 57, 116]

/** Returns the value of an option, given as hexadecimal digits: as addresses, seconds, a number or text, otherwise as the digits. */
export function optionText(code: number, hex: string): string {
  const octets = hex.match(/../g)?.map(x => parseInt(x, 16)) ?? []
  if (octets.length === 0) return "0x"
  const number = String(octets.reduce((n, o) => n * 256n + BigInt(o), 0n))
  if (addressCodes.includes(code) && octets.length % 4 === 0)
    return Array.from({ length: octets.length / 4 }, (_, i) => octets.slice(4 * i, 4 * i + 4).join(".")).join(", ")
  if (timeCodes.includes(code) && octets.length === 4) return number + " s"
  if (code === 2 && octets.length === 4) return (parseInt(hex, 16) | 0) + " s" // a signed number, RFC 2132 section 3.4
  if (numberCodes.includes(code) && octets.length <= 4) return number
  if (octets.every(o => o >= 32 && o < 127)) return String.fromCharCode(...octets)
  return "0x" + hex
}

/** The codes of DHCPv6 options with addresses, with names, with times in seconds, and with numbers. */
const addressCodes6 = [22, 23, 27, 28, 31, 34, 40],
  nameCodes6 = [21, 24, 29, 30, 33],
  timeCodes6 = [32, 82, 83],
  numberCodes6 = [7]

/** Returns the names of octets in the format of DNS messages; an empty text if they are in another format. */
function namesOf(octets: number[]): string {
  const names: string[] = []
  let name = ""
  for (let i = 0; i < octets.length; i += octets[i] + 1) {
    if (octets[i] === 0) {
      names.push(name)
      name = ""
    } else {
      if (octets[i] > 63 || i + octets[i] >= octets.length) return ""
      name += (name && ".") + String.fromCharCode(...octets.slice(i + 1, i + 1 + octets[i]))
    }
  }
  return name ? "" : names.join(", ")
}

/**
 * Returns the value of a DHCPv6 option, given as hexadecimal digits: as addresses, names, seconds, a number or text, otherwise as the digits.
 */
export function optionText6(code: number, hex: string): string {
  if (addressCodes6.includes(code) && hex.length > 0 && hex.length % 32 === 0)
    return hex
      .match(/.{32}/g)!
      .map(x => address(BigInt("0x" + x), true))
      .join(", ")
  if (timeCodes6.includes(code) && hex.length === 8) return parseInt(hex, 16) + " s"
  if (numberCodes6.includes(code) && hex.length === 2) return String(parseInt(hex, 16))
  const octets = hex.match(/../g)?.map(x => parseInt(x, 16)) ?? []
  if (nameCodes6.includes(code)) return namesOf(octets) || "0x" + hex
  return octets.length > 0 && octets.every(o => o >= 32 && o < 127) ? String.fromCharCode(...octets) : "0x" + hex
}
