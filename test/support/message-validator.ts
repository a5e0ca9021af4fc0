import { Ajv2020 } from 'ajv/dist/2020.js'
import { publishedSchemas } from '../../src/docs/json-schemas.ts'
import { Request } from '../../src/protocol/requests.ts'

/** Validates with the served schemas, through a validator that is independent of how they were made. */

const ajv = new Ajv2020({ strict: true, allErrors: false })
const validators = new Map([...publishedSchemas()].map(([type, schema]) => [type, ajv.compile(schema)]))

/** The error of a message against the published schema of its type; null where it fits. */
export function findSchemaError(message: unknown): string | null {
  const type = typeof message === 'object' && message !== null && 'type' in message ? String(message.type) : ''
  const validate = validators.get(type)
  if (!validate) return `there is no schema for the type '${type}'`
  return validate(message) ? null : ajv.errorsText(validate.errors)
}

/** Fails where a message does not fit the published schema of its type. */
export function assertValidMessage<Message>(message: Message): Message {
  const error = findSchemaError(message)
  if (error !== null) throw new Error(`${error}: ${JSON.stringify(message)}`)
  return message
}

/** Fails where the service accepts a client's message that its published schema rejects. */
export function assertValidRequest(message: unknown): void {
  if (Request.safeParse(message).success) assertValidMessage(message)
}
