import { bearerTokenOf, keyRequired } from '../limits/authorizer.ts'
import type { StreamServices } from '../live/edge-context.ts'
import { type Handlers, sendJson } from './handlers.ts'
import { noKeys } from './http-refusals.ts'

/** Gives a token for a key, so that a page needs no key in its URLs. A token gives no other one: it would last for ever. */
export const accessTokenHandlers = ({ keys }: Pick<StreamServices, 'keys'>): Handlers<'accessToken'> => ({
  accessToken: (c) => {
    if (!keys) throw noKeys
    const client = keys.clientOfKey(bearerTokenOf(c.req.header('authorization')) ?? '')
    const token = client === null ? null : keys.createToken(client)
    if (!token) throw keyRequired
    return sendJson(c, JSON.stringify(token))
  },
})
