import { Ajv2020 } from 'ajv/dist/2020.js'
import { publishedSchemas } from '../../src/docs/schemas.ts'
import { Request } from '../../src/protocol/requests.ts'

/** Judges by the schemas that are served, with a validator that knows nothing of how they were made. */

const ajv = new Ajv2020({ strict: true, allErrors: false })
const judges = new Map([...publishedSchemas()].map(([type, schema]) => [type, ajv.compile(schema)]))

/** What the published schema of its type has against a message; null where it has nothing. */
export function objection(message: unknown): string | null {
  const type = typeof message === 'object' && message !== null && 'type' in message ? String(message.type) : ''
  const judge = judges.get(type)
  if (!judge) return `there is no schema for the type '${type}'`
  return judge(message) ? null : ajv.errorsText(judge.errors)
}

/** Fails where a message is not as the published schema of its type says. */
export function asPublished<Message>(message: Message): Message {
  const wrong = objection(message)
  if (wrong !== null) throw new Error(`${wrong}: ${JSON.stringify(message)}`)
  return message
}

/** Fails where the service would take what a client says, and its published schema would not. */
export function saidAsPublished(message: unknown): void {
  if (Request.safeParse(message).success) asPublished(message)
}
