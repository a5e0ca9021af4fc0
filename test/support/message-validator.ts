import { Ajv2020 } from 'ajv/dist/2020.js'
import { publishedSchemas } from '../../src/docs/schemas.ts'
import { Request } from '../../src/protocol/requests.ts'

/** Judges by the schemas that are served, with a validator that knows nothing of how they were made. */

const ajv = new Ajv2020({ strict: true, allErrors: false })
const validators = new Map([...publishedSchemas()].map(([type, schema]) => [type, ajv.compile(schema)]))

/** What the published schema of its type has against a message; null where it has nothing. */
export function findSchemaError(message: unknown): string | null {
  const type = typeof message === 'object' && message !== null && 'type' in message ? String(message.type) : ''
  const validate = validators.get(type)
  if (!validate) return `there is no schema for the type '${type}'`
  return validate(message) ? null : ajv.errorsText(validate.errors)
}

/** Fails where a message is not as the published schema of its type says. */
export function assertValidMessage<Message>(message: Message): Message {
  const error = findSchemaError(message)
  if (error !== null) throw new Error(`${error}: ${JSON.stringify(message)}`)
  return message
}

/** Fails where the service would take what a client says, and its published schema would not. */
export function assertValidRequest(message: unknown): void {
  if (Request.safeParse(message).success) assertValidMessage(message)
}
