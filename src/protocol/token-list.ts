import { z } from 'zod'
import { PositionText, registerSchema, TokenRecord } from './fields.ts'
import { tokenStateFields } from './notices.ts'

/** The list as the Read API gives it. */
export const TokenList = registerSchema(
  'TokenList',
  'The list of tokenized stocks, exactly as the Read API gives it. Presence of a record does not imply that the token can be traded, or by whom.',
  z.object({ tokens: z.array(TokenRecord) }),
)

/** One token as it stands now, joined. */
export const TokenDetails = registerSchema(
  'TokenStanding',
  'One token as it stands now. Presence of a record does not imply that the token can be traded, or by whom.',
  z.object({
    ...tokenStateFields,
    last: PositionText.nullable().describe('The position of its newest message that is kept.'),
  }),
)
export type TokenDetails = z.infer<typeof TokenDetails>
