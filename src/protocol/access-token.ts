import { z } from 'zod'
import { registerSchema, Time } from './fields.ts'

/** A short-lived token in place of a key. */
export const AccessToken = registerSchema(
  'AccessToken',
  'A token that stands for a key for about a minute.',
  z.object({
    token: z.string().describe('Goes into key=… of a URL, or into the Authorization header.'),
    expires_at: Time.describe('When it opens no further connection. Those that are open stay.'),
  }),
)
