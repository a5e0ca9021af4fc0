import { z } from 'zod'
import { RequestId } from './connection.ts'
import { Asked, Symbols } from './selection.ts'

/** The longest message that a client may send. */
export const MESSAGE_BOUND_BYTES = 4_096

/** Clients that number nothing may say so with null. */
const req = RequestId.nullish().transform((given) => given ?? undefined)

/** What a client may say on a WebSocket. */
export const Request = z.discriminatedUnion('type', [
  Asked.extend({ type: z.literal('subscribe'), req, symbols: Symbols.optional() }),
  z.object({ type: z.literal('unsubscribe'), req, symbols: Symbols }),
  z.object({ type: z.literal('list'), req }),
  z.object({ type: z.literal('ping'), req }),
])
export type Request = z.infer<typeof Request>
