import { z } from 'zod'
import { PositionText, registerSchema, TokenRecord } from './fields.ts'
import { RejectedSymbol, Snapshot, tokenStateFields } from './notices.ts'

export const TokenList = registerSchema(
  'TokenList',
  'The list of tokenized stocks, exactly as the Read API sends it. Presence of a record does not imply trading availability or eligibility.',
  z.object({ tokens: z.array(TokenRecord) }),
)

export const TokenDetails = registerSchema(
  'TokenStanding',
  'The current state of one token. Presence of a record does not imply trading availability or eligibility.',
  z.object({ ...tokenStateFields, last: PositionText.nullable().describe('The position of the newest stored message about it.') }),
)
export type TokenDetails = z.infer<typeof TokenDetails>

export const Snapshots = registerSchema(
  'Snapshots',
  'The state of tokens at one position. Presence of a record does not imply trading availability or eligibility.',
  z.object({
    as_of: PositionText.describe('The position that every snapshot includes, and from which a stream continues.'),
    snapshots: z.array(Snapshot),
    rejected: z.array(RejectedSymbol).describe('The symbols that name no token.'),
  }),
)
