import { z } from 'zod'
import { type Hex, readHex, readQuantity, WORD_CHARS } from '../../../lib/hex.ts'
import { NEVER_SECONDS } from '../../../lib/iso-time.ts'

/** A schema for a text of a node that `read` accepts. */
const fieldOf = <Value>(read: (text: string) => Value | null) =>
  z.string().transform((text, { issues }) => {
    const value = read(text)
    if (value !== null) return value
    issues.push({ code: 'custom', message: 'must be hex of this kind', input: text })
    return z.NEVER
  })

export const HexWord = fieldOf((text) => readHex(text, WORD_CHARS))
const HexQuantity = fieldOf(readQuantity)

/** Unix seconds. An unreadable one becomes null, since it must not cost a block. */
const Timestamp = HexQuantity.refine((seconds) => seconds < NEVER_SECONDS)
  .nullish()
  .catch(null)
  .transform((seconds) => seconds ?? null)

/** Some nodes send whole transactions although only hashes were requested. */
const TransactionHash = z.union([HexWord, z.object({ hash: HexWord }).transform(({ hash }) => hash)])

/** The used fields of a block header. A pending one may lack number and hash. */
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
