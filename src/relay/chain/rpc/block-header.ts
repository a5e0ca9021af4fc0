import { z } from 'zod'
import { type Hex, readHex, readQuantity, WORD_CHARS } from '../../../lib/hex.ts'
import { NEVER_SECONDS } from '../../../lib/iso-time.ts'

/** Returns a schema for a text that `read` can parse. The value that `read` returns replaces the text. */
const fieldOf = <Value>(read: (text: string) => Value | null) =>
  z.string().transform((text, { issues }) => {
    const value = read(text)
    if (value !== null) return value
    issues.push({ code: 'custom', message: 'must be hex of this kind', input: text })
    return z.NEVER
  })

export const HexWord = fieldOf((text) => readHex(text, WORD_CHARS))
const HexQuantity = fieldOf(readQuantity)

/** Unix seconds. An unreadable timestamp becomes null, so that the block can still be read. */
const Timestamp = HexQuantity.refine((seconds) => seconds < NEVER_SECONDS)
  .nullish()
  .catch(null)
  .transform((seconds) => seconds ?? null)

/** Accepts a whole transaction too, since some nodes send it although only hashes were requested. */
const TransactionHash = z.union([HexWord, z.object({ hash: HexWord }).transform(({ hash }) => hash)])

/** The fields of a block header that the relay uses. The header of a pending block may lack number and hash. */
export const Header = z.object({
  number: HexQuantity.nullish().transform((number) => number ?? null),
  hash: HexWord.nullish().transform((hash) => hash ?? null),
  parentHash: HexWord.nullish().transform((hash) => hash ?? null),
  timestamp: Timestamp,
  gasUsed: HexQuantity.nullish().catch(null),
  transactions: z.array(TransactionHash).nullish().catch(null),
})
export type Header = z.infer<typeof Header>

export type SealedHeader = Header & { readonly number: number; readonly hash: Hex }

export const isSealed = (header: Header | null): header is SealedHeader => header?.number != null && header.hash !== null
