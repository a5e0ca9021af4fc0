import { z } from 'zod'
import { parseJson } from '../lib/safe-json.ts'
import { RequestId } from './notices.ts'
import { readOr400, refuseUnknown } from './parameters/read-parameters.ts'
import { SelectionPatch, Symbols } from './parameters/selection.ts'
import { Refusal } from './refusal.ts'
import { messageSchema } from './schema-registry.ts'

export const MESSAGE_BOUND_BYTES = 4_096

const KEY_BOUND_CHARS = 512

/** Accepts null, which some clients send if they do not number their requests. */
const req = RequestId.nullish().transform((given) => given ?? undefined)

/** Messages that a client may send on a WebSocket. */
export const Request = z.discriminatedUnion('type', [
  messageSchema('subscribe', 'Adds symbols to the selection. An option replaces the current value; null sets the default.', {
    req,
    symbols: Symbols.optional(),
    ...SelectionPatch.shape,
  }),
  messageSchema('unsubscribe', 'Removes symbols from the selection.', { req, symbols: Symbols }),
  messageSchema('list', 'Asks for the current selection.', { req }),
  messageSchema('auth', 'Gives the API key as the first message, if neither a header nor the URL has one.', {
    req,
    key: z.string().max(KEY_BOUND_CHARS).describe('An API key, or an access token in place of it.'),
  }),
  messageSchema('ping', 'Asks for a pong.', { req }),
])
export type Request = z.infer<typeof Request>

/** Reads a message of a client. `text` is null for a binary message. */
export function readRequest(text: string | null): Request {
  if (text === null) throw new Refusal(400, 'binary', 'Messages are JSON text, not binary.')
  const parsed = parseJson(text)
  if (parsed === undefined) throw new Refusal(400, 'bad_json', 'The message is not JSON.')
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new Refusal(400, 'bad_message', 'A message is a JSON object with a type.')
  const schema = Request.options.find(({ shape }) => 'type' in parsed && shape.type.value === parsed.type)
  if (!schema) {
    const knownTypes = Request.options.map(({ shape }) => shape.type.value)
    throw new Refusal(400, 'unknown_type', `type: must be one of ${knownTypes.join(', ')}.`)
  }
  refuseUnknown('field', Object.keys(parsed), Object.keys(schema.shape))
  return readOr400(Request, parsed)
}

const WithReq = z.object({ req })

/** Returns the `req` of a message; undefined if there is none, or if the message is unreadable. */
export const reqOf = (text: string | null): string | number | undefined => WithReq.safeParse(parseJson(text ?? '')).data?.req
