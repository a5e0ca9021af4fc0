import { z } from 'zod'
import { PositionText, TokenRecord } from './fields.ts'
import { RejectedSymbol, Snapshot, tokenStateFields } from './notices.ts'
import { registerObject } from './schema-registry.ts'

const disclaimer = 'Presence of a record does not imply trading availability or eligibility.'

export const TokenList = registerObject(
  'TokenList',
  `The list of tokenized stocks, exactly as the Read API sends it. ${disclaimer}`,
  { tokens: z.array(TokenRecord) },
)

export const TokenDetails = registerObject('TokenStanding', `The current state of one token. ${disclaimer}`, {
  ...tokenStateFields,
  last: PositionText.nullable().describe('The position of the newest stored message about it.'),
})
export type TokenDetails = z.infer<typeof TokenDetails>

export const Snapshots = registerObject('Snapshots', `The state of tokens at one position. ${disclaimer}`, {
  as_of: PositionText.describe('The position that every snapshot includes, and from which a stream continues.'),
  snapshots: z.array(Snapshot),
  rejected: z.array(RejectedSymbol).describe('The symbols that name no token.'),
})
