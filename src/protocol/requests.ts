import { z } from 'zod'
import { registerSchema } from './fields.ts'
import { RequestId } from './notices.ts'
import { SelectionPatch, Symbols } from './selection.ts'

/** The longest message that a client may send. */
export const MESSAGE_BOUND_BYTES = 4_096

/** Clients that number nothing may say so with null. */
const req = RequestId.nullish().transform((given) => given ?? undefined)

/** What a client may say on a WebSocket. */
export const Request = z.discriminatedUnion('type', [
  registerSchema(
    'subscribe',
    'Adds symbols to what is heard; its options replace those that hold, null clears one.',
    z.object({ type: z.literal('subscribe'), req, symbols: Symbols.optional(), ...SelectionPatch.shape }),
  ),
  registerSchema(
    'unsubscribe',
    'Takes symbols out of what is heard.',
    z.object({ type: z.literal('unsubscribe'), req, symbols: Symbols }),
  ),
  registerSchema('list', 'Asks what is heard now.', z.object({ type: z.literal('list'), req })),
  registerSchema('ping', 'Asks for a pong.', z.object({ type: z.literal('ping'), req })),
])
export type Request = z.infer<typeof Request>
