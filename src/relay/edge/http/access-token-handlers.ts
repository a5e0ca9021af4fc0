import { bearerTokenOf } from '../limits/authorizer.ts'
import { apiKeyRequired, noApiKeys } from '../limits/refusals.ts'
import type { EdgeContext } from '../live/edge-context.ts'
import { type Handlers, sendJson } from './handler-basics.ts'

/** Exchanges an API key for an access token, so that a page needs no key in its URLs. A token cannot renew itself. */
export const accessTokenHandlers = ({ keys }: EdgeContext): Handlers<'accessToken'> => ({
  accessToken: (c) => {
    if (!keys) throw noApiKeys
    const client = keys.clientOfApiKey(bearerTokenOf(c.req.header('authorization')) ?? '')
    const token = client === null ? null : keys.createAccessToken(client)
    if (!token) throw apiKeyRequired
    return sendJson(c, JSON.stringify(token))
  },
})
