// Values of DHCPv4 options as text (RFC 2132).

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
