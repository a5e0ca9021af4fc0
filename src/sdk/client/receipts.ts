import type { Receipt, Update } from '../generated/messages.ts'

const DIGEST_BYTES = 16

/** Returns the digest of a receipt for these ids. Null if the platform cannot compute it, such as a page without HTTPS. */
export async function digestOf(ids: readonly string[]): Promise<string | null> {
  const hash = await crypto.subtle?.digest('SHA-256', new TextEncoder().encode(ids.join('\n')))
  if (!hash) return null
  return Array.from(new Uint8Array(hash, 0, DIGEST_BYTES), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Reads the lines of an export. Throws if they have not the receipt that they should have. */
export async function readExport(text: string, hasReceipt: boolean, hash: typeof digestOf): Promise<readonly Update[]> {
  const lines: (Update | Receipt)[] = JSON.parse(`[${text.trim().replaceAll('\n', ',')}]`)
  const receipt = hasReceipt && lines.pop()
  const updates = lines as Update[]
  if (!receipt) return updates
  const digest = await hash(updates.map(({ id }) => id))
  if (receipt.type !== 'receipt' || receipt.messages !== updates.length || (digest ?? receipt.digest) !== receipt.digest)
    throw new SyntaxError('the receipt differs')
  return updates
}
