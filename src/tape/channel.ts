/** Where everything lies that was written before there were channels. */
export const UNFILED = 0

/** FNV-1a over 32 bits. */
const OFFSET = 0x811c9dc5
const PRIME = 0x01000193

/**
 * The number under which the messages of one token and type are filed; of `*` where the address is null. Four bytes stand
 * for fifty in an index that every append writes to. Two channels may share a number by chance, so whoever reads by it
 * looks at what it gets.
 */
export function channelOf(address: string | null, type: string): number {
  const name = `${address ?? '*'} ${type}`
  let hash = OFFSET
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), PRIME)
  return hash >>> 0
}
