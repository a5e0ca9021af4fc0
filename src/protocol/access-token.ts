import { z } from 'zod'
import { Time } from './fields.ts'
import { registerObject } from './schema-registry.ts'

export const AccessToken = registerObject('AccessToken', 'An access token, valid for about a minute in place of an API key.', {
  token: z.string().describe('The access token, for key=… in a URL or for the Authorization header.'),
  expires_at: Time.describe('After this time it opens no further connection. Open connections stay.'),
})
