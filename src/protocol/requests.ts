import { z } from 'zod'
import { registerSchema } from './fields.ts'
import { RequestId } from './notices.ts'
import { SelectionPatch, Symbols } from './selection.ts'

/** The longest message that a client may send. */
export const MESSAGE_BOUND_BYTES = 4_096

/** Some clients send null when they number nothing. */
const req = RequestId.nullish().transform((given) => given ?? undefined)

/** What a client may send on a WebSocket. */
export const Request = z.discriminatedUnion('type', [
  registerSchema(
    'subscribe',
    'Adds symbols to the selection. An option replaces the current value; null sets the default.',
    z.object({ type: z.literal('subscribe'), req, symbols: Symbols.optional(), ...SelectionPatch.shape }),
  ),
  registerSchema(
    'unsubscribe',
    'Removes symbols from the selection.',
    z.object({ type: z.literal('unsubscribe'), req, symbols: Symbols }),
  ),
  registerSchema('list', 'Asks for the current selection.', z.object({ type: z.literal('list'), req })),
  registerSchema('ping', 'Asks for a pong.', z.object({ type: z.literal('ping'), req })),
])
export type Request = z.infer<typeof Request>
