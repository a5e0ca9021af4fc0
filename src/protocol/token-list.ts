import { z } from 'zod'
import { PositionText, publish, TokenRecord } from './fields.ts'
import { standing } from './notices.ts'

/** The list as the Read API gives it. */
export const TokenList = publish(
  'TokenList',
  'The list of tokenized stocks, exactly as the Read API gives it. Presence of a record does not imply that the token can be traded, or by whom.',
  z.object({ tokens: z.array(TokenRecord) }),
)

/** One token as it stands now, joined. */
export const TokenStanding = publish(
  'TokenStanding',
  'One token as it stands now. Presence of a record does not imply that the token can be traded, or by whom.',
  z.object({
    ...standing,
    last: PositionText.nullable().describe('The position of its newest message that is kept.'),
  }),
)
export type TokenStanding = z.infer<typeof TokenStanding>
